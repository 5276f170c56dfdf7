// Package evidence keeps the files that checkers show beside their verdicts:
// pictures, videos, and recordings of a whole test.
//
// Each file has a row before it is written, and the row is marked once the file is there.
// A crash in between leaves an upload that the sweep removes.
//
// Parts of a recording are files, too. A part is acknowledged once its row is on the
// disk, and deleted at once if another part came first. Any API node makes a finished
// recording one file, under a lease, and attaches it to the job (Run).
//
// Events hold the path of a file without a signature. An answer shows a link that is
// signed with a key of the account, so that erasing the account ends all its links.
//
//	upload.go      a file in a form, checked and stored
//	rows.go        the rows of files, and which of them are still referred to
//	file.go        a file, or a part of it, as an answer
//	links.go       signed links, and references in requests
//	recordings.go  a recording while it is under way; recording_rows.go, part_rows.go
//	assemble.go    a recording that has ended becomes a file
//	disk.go        recordings leave room for the log
//	expire.go      evidence that is kept no longer; kept.go: what is kept, in bytes
//	erase.go       the files of an erased account
//	references.go  references in the log that lead to no file
package evidence
