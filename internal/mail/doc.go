// Package mail sends people the notices that they asked for, by e-mail.
//
// A person gives an address and chooses, for each account, the notices they want (Store).
// A consumer of the log (webhooks/notices) writes notices, in the transaction that moves
// its checkpoint. The Sender makes a letter of a person's waiting notices, one an hour at
// most, and sends it.
//
// A letter is leased like other work (internal/workloop). Its id makes the Message-ID, and
// its notices never change. So a letter that is sent again, after a crash between the
// server's answer and our commit, can be recognised by its receiver.
//
// A letter that cannot be sent waits and is tried again. Only a server that refuses the
// letter itself ends it, after three days. Every read and write of the server has a
// deadline, and an attempt has one as a whole.
//
// The chat of a project (internal/chat) gets letters as a person does: the same notices,
// leases, hour and retries. Its address stays in the log, sealed. A letter that a chat has not
// taken for three days is given up.
//
// Nothing but the link that confirms it goes to an address before it is confirmed. Such
// letters are bounded for the person and for the address, and their reader can end them. The
// links need no sign-in: they carry a MAC under the master keyset (Links), and no row
// holds a secret. Rights are asked of the log when a letter is made up: a person who has
// left an account hears nothing of it.
package mail
