package mail

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/backoff"
	"humanqa/internal/chat"
	"humanqa/internal/fence"
	"humanqa/internal/pgpool"
	"humanqa/internal/workloop"
)

const (
	places = 4
	// lease outlasts an attempt with its two looks into the database.
	lease = 2 * time.Minute
	poll  = 5 * time.Second
	drain = 2 * time.Second
	// firstRetry doubles with each failure, up to lastRetry.
	firstRetry = 30 * time.Second
	lastRetry  = 30 * time.Minute
	// refusedFor is how long a letter is tried again although the server itself refuses
	// it.
	refusedFor = 3 * 24 * time.Hour
	// keepSettled is how long a settled letter stays.
	keepSettled = 30 * 24 * time.Hour
	// PurgeEvery is how often letters are to be purged.
	PurgeEvery = time.Hour
	// questionsEvery is the least time between two letters with questions: each waits for
	// half an hour (decisions, "Questions").
	questionsEvery = 5 * time.Minute
	// lateAfter is how long letters wait before operators are told.
	lateAfter = time.Hour
)

// Config holds the dependencies and settings of a Sender.
type Config struct {
	DB     *sqlx.DB
	Server *Server // nil: no e-mail is sent, and letters to people wait
	Links  Links
	Poster *chat.Poster
	// ChatAddress gives the address of a project's chat, and the change that set it; empty:
	// there is none. EndChat ends the chat that the change has set.
	ChatAddress func(ctx context.Context, accountID, projectID string) (address, changeID string, err error)
	EndChat     func(ctx context.Context, accountID, projectID, changeID, reason string) error
	// Grants gives the rights that a person has in the log now; domain.KindNotFound where
	// they are disabled, or not there.
	Grants func(ctx context.Context, personID string) ([]person.Grant, error)
	Log    logrus.FieldLogger
	// Every is the least time between two digests to a person; zero: an hour. Letters with
	// questions have five minutes, or this if it is less.
	Every time.Duration
	// Gather is how long the first notice waits for more; zero: not at all.
	Gather time.Duration
	// Poll is how often letters are looked for; zero: 5 seconds.
	Poll time.Duration
	// Retry is the wait after the first failure, which doubles; zero: 30 seconds.
	Retry time.Duration
}

// Sender makes letters of notices and sends them. Several may run, in any number of
// processes.
type Sender struct {
	cfg      Config
	people   *workloop.Loop[leased, outcome]
	chats    *workloop.Loop[leased, outcome]
	outcomes *prometheus.CounterVec
}

// NewSender prepares a sender; Run starts it, once.
func NewSender(cfg Config) *Sender {
	cfg.Every = cmp.Or(cfg.Every, time.Hour)
	cfg.Poll = cmp.Or(cfg.Poll, poll)
	cfg.Retry = cmp.Or(cfg.Retry, firstRetry)
	s := &Sender{cfg: cfg, outcomes: newOutcomes()}
	loop := workloop.Config{Name: "mail", Places: places, Lease: lease, Drain: drain, Poll: cfg.Poll, Log: cfg.Log}
	s.people = workloop.New(work{s, false}, loop)
	loop.Name = "chats"
	s.chats = workloop.New(work{s, true}, loop)
	return s
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	var people sync.WaitGroup
	if s.cfg.Server != nil {
		people.Go(func() { s.people.Run(ctx, nil) })
	}
	s.chats.Run(ctx, nil)
	people.Wait()
	return nil
}

// Problem says why nothing is sent although there is work; empty: nothing is wrong.
func (s *Sender) Problem() string { return cmp.Or(s.people.Problem(), s.chats.Problem()) }

// work is the sender as a loop does it: a mail server that hangs keeps no chat waiting.
type work struct {
	*Sender
	chats bool // or people
}

// leased is a letter that belongs to this process until its lease ends.
type leased struct {
	ID        string    `db:"id" json:"id"`
	PersonID  string    `db:"person_id" json:"-"`
	AccountID string    `db:"account_id" json:"-"` // of the chat of project PersonID; empty: it is a person's
	Kind      string    `db:"kind" json:"-"`
	Attempt   int       `db:"attempt" json:"attempt"`
	CreatedAt time.Time `db:"created_at" json:"-"`
}

// outcome is the result of an attempt, as settleSQL reads it.
type outcome struct {
	leased
	State string `json:"state"` // sent, dropped, refused, or waiting: it is tried again
	Wait  int64  `json:"wait"`  // milliseconds
	Said  string `json:"said"`  // why the letter was not sent
}

// A person with notices gets a letter of all of them, unless one waits already or the
// last one was a moment ago. Another process that does the same passes over the person.
// Questions of checkers wait for minutes only, and have letters of their own.
var makeDigestsSQL, makeQuestionsSQL = makeLettersSQL("digest", "digest_at", "<>"), makeLettersSQL("question", "question_at", "=")

func makeLettersSQL(kind, last, questions string) string {
	return strings.NewReplacer("{kind}", kind, "{last}", last, "{is}", questions).Replace(`
WITH ready AS (
    SELECT person_id, account_id
    FROM mail.people p
    WHERE confirmed_at IS NOT NULL
      AND (account_id IS NOT NULL) = $3
      AND stopped_at IS NULL
      AND ({last} IS NULL OR {last} <= now() - $1 * interval '1 millisecond')
      AND EXISTS (
        SELECT 1
        FROM mail.notices n
        WHERE n.person_id = p.person_id
          AND n.letter_id IS NULL
          AND n.kind {is} 'question'
          AND n.created_at <= now() - $2 * interval '1 millisecond')
      AND NOT EXISTS (
        SELECT 1
        FROM mail.letters l
        WHERE l.person_id = p.person_id
          AND l.kind = '{kind}'
          AND l.state = 'waiting')
    ORDER BY person_id
    LIMIT 1000
    FOR UPDATE SKIP LOCKED
), noted AS (
    UPDATE mail.people p
    SET {last} = now()
    FROM ready
    WHERE p.person_id = ready.person_id
), made AS (
    INSERT INTO mail.letters (id, person_id, account_id, kind, created_at, due_at)
    SELECT gen_random_uuid(), person_id, account_id, '{kind}', now(), now()
    FROM ready
    RETURNING id, person_id
)
UPDATE mail.notices n
SET letter_id = made.id
FROM made
WHERE n.person_id = made.person_id
  AND n.kind {is} 'question'
  AND n.letter_id IS NULL`)
}

// An account whose chats hang or fail comes after the others: what is leased, or tried again,
// has its first turns.
const leaseSQL = `
WITH turns AS (
    SELECT id, row_number() OVER (PARTITION BY account_id ORDER BY due_at <= now(), due_at) AS turn
    FROM mail.letters
    WHERE state = 'waiting'
      AND (account_id IS NOT NULL) = $3
), due AS (
    SELECT id
    FROM mail.letters l
    JOIN turns USING (id)
    WHERE state = 'waiting'
      AND due_at <= now()
    ORDER BY turn, due_at
    LIMIT $1
    FOR UPDATE OF l SKIP LOCKED
)
UPDATE mail.letters l
SET due_at = now() + $2 * interval '1 millisecond', attempt = attempt + 1
FROM due
WHERE l.id = due.id
RETURNING l.id, l.person_id, coalesce(l.account_id, '') AS account_id, l.kind, l.attempt, l.created_at`

// Take implements workloop.Work.
func (w work) Take(ctx context.Context, limit int) (due []leased, next time.Duration, err error) {
	err = pgpool.InTx(ctx, w.cfg.DB, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, makeDigestsSQL, w.cfg.Every.Milliseconds(), w.cfg.Gather.Milliseconds(), w.chats); err != nil {
			return fmt.Errorf("make letters: %w", err)
		}
		if _, err := tx.ExecContext(ctx, makeQuestionsSQL, min(w.cfg.Every, questionsEvery).Milliseconds(), 0, w.chats); err != nil {
			return fmt.Errorf("make letters with questions: %w", err)
		}
		due, err = pgpool.List[leased](ctx, tx, "the letters that are due", leaseSQL, limit, lease.Milliseconds(), w.chats)
		return err
	})
	return due, -1, err
}

// Do implements workloop.Work.
func (w work) Do(ctx context.Context, l leased) outcome {
	ctx, cancel := context.WithTimeout(ctx, lease/2)
	defer cancel()
	hand := w.sendLetter
	if w.chats {
		hand = w.tellChat
	}
	why, err := hand(ctx, l)
	switch {
	case err != nil:
	case why != "":
		return outcome{leased: l, State: "dropped", Said: why}
	default:
		return outcome{leased: l, State: "sent"}
	}
	w.cfg.Log.WithError(err).WithFields(logrus.Fields{"letter": l.ID, "attempt": l.Attempt}).Warn("a letter was not sent")
	o := outcome{leased: l, State: "waiting", Said: err.Error()}
	if refused := (refusedError{}); errors.As(err, &refused) {
		o.Said = refusedMark + o.Said
		if time.Since(l.CreatedAt) > refusedFor {
			o.State = "refused"
		}
	}
	o.Said = fence.Clean(o.Said, maxSaid)
	wait := backoff.Jitter(backoff.Delay(l.Attempt, w.cfg.Retry, lastRetry))
	if answer, answered := errors.AsType[*chat.Error](err); answered {
		wait = max(wait, answer.After)
	}
	o.Wait = wait.Milliseconds()
	return o
}

// tellChat tells a project's chat, and ends a chat that is gone. A crash between the answer
// and our commit has it told twice. Other trouble ends the letter, as a refusal does; why
// says for which reason there is nothing to tell.
func (w work) tellChat(ctx context.Context, l leased) (why string, err error) {
	told, err := pgpool.List[Notice](ctx, w.cfg.DB, "the notices for a chat", toldSQL, l.ID)
	if err != nil {
		return "", err
	}
	address, changeID, err := w.cfg.ChatAddress(ctx, l.AccountID, l.PersonID)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the chat of a project: %w", err)
	case address == "" || len(told) == 0:
		return "the chat is not there any more", nil
	}
	err = w.cfg.Poster.Post(ctx, address, chatLines(told, w.cfg.Links), w.cfg.Links.Page("/dashboard"))
	if answer, answered := errors.AsType[*chat.Error](err); answered && answer.Gone {
		return answer.Error(), w.cfg.EndChat(ctx, l.AccountID, l.PersonID, changeID, answer.Error())
	}
	if err != nil {
		return "", refusedError{err}
	}
	return "", nil
}

// refusedMark begins the codes of a server that refused a letter: its person may see them.
const refusedMark = "refused: "

const toldSQL = `
SELECT event_id, account_id, kind, failed, title, project, verdict, path, at
FROM mail.notices
WHERE letter_id = $1
ORDER BY at, event_id`

// sendLetter makes the message of a letter and sends it; why says for which reason there is
// none.
func (w work) sendLetter(ctx context.Context, l leased) (why string, err error) {
	p, err := pgpool.One[Person](ctx, w.cfg.DB, "the address of a letter", personSQL, l.PersonID)
	if err != nil {
		return "", err
	}
	if p.StoppedAt != nil {
		return "the person stopped e-mail", nil
	}
	links := w.cfg.Links
	if l.Kind == "confirm" {
		refused, err := refuses(ctx, w.cfg.DB, links.marks(p.Address))
		if err != nil || refused {
			return "the reader of the address wants no link", err
		}
		host := strings.TrimPrefix(strings.TrimPrefix(links.BaseURL, "https://"), "http://")
		return "", w.cfg.Server.send(ctx, confirmLetter(l.ID, p.Address, links.Confirm(l.PersonID, p.Address, p.AskedAt), host, links.Refuse(p.Address)))
	}
	if p.ConfirmedAt == nil {
		return "the address is not confirmed any more", nil
	}
	told, err := pgpool.List[Notice](ctx, w.cfg.DB, "the notices of a letter", toldSQL, l.ID)
	if err == nil {
		told, err = w.permitted(ctx, l.PersonID, told)
	}
	if err != nil {
		return "", err
	}
	if len(told) == 0 {
		return "the person may read nothing of it any more", nil
	}
	more := max(0, len(told)-mostTold)
	return "", w.cfg.Server.send(ctx, digestLetter(l.ID, p.Address, told[:len(told)-more], more, links, links.Stop(l.PersonID)))
}

// permitted are the notices of accounts in which the person still has a role.
func (w work) permitted(ctx context.Context, personID string, told []Notice) (list []Notice, err error) {
	grants, err := w.cfg.Grants(ctx, personID)
	if domain.IsKind(err, domain.KindNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ask for the roles of a person: %w", err)
	}
	member := map[string]bool{}
	for _, g := range grants {
		if g.Role.OfAccount() {
			member[g.AccountID] = true
		}
	}
	for _, n := range told {
		if member[n.AccountID] {
			list = append(list, n)
		}
	}
	return list, nil
}

// maxSaid bounds the text that is kept of an error, in characters.
const maxSaid = 300

// An outcome counts only under its own lease. A letter that was sent starts the hour
// anew, so that the next one does not follow at once.
const settleSQL = `
WITH settled AS (
    UPDATE mail.letters l
    SET state = o.state, last_error = o.said,
        due_at = now() + o.wait * interval '1 millisecond',
        settled_at = CASE WHEN o.state <> 'waiting' THEN now() END
    FROM json_to_recordset($1) AS o (id uuid, attempt integer, state text, wait bigint, said text)
    WHERE l.id = o.id
      AND l.attempt = o.attempt
      AND l.state = 'waiting'
    RETURNING l.person_id, l.kind, l.state
)
UPDATE mail.people p
SET digest_at = CASE WHEN settled.kind = 'digest' THEN now() ELSE digest_at END,
    question_at = CASE WHEN settled.kind = 'question' THEN now() ELSE question_at END
FROM settled
WHERE p.person_id = settled.person_id
  AND settled.kind <> 'confirm'
  AND settled.state = 'sent'`

// Settle implements workloop.Work.
func (w work) Settle(ctx context.Context, done []outcome) (more bool, err error) {
	if err := pgpool.Exec(ctx, w.cfg.DB, "settle letters", settleSQL, pgpool.Rows(done)); err != nil {
		return false, err
	}
	for _, o := range done {
		w.count(o.State)
	}
	return false, nil
}

const purgeSQL = `
WITH letters AS (
    DELETE FROM mail.letters
    WHERE state <> 'waiting'
      AND settled_at < now() - $1 * interval '1 millisecond'
)
DELETE FROM mail.addresses
WHERE refused_at IS NULL
  AND NOT EXISTS (SELECT FROM unnest(asked_at) t WHERE t > now() - interval '1 day')`

// Purge forgets letters, with their notices, that were settled long ago, and addresses to
// which none was sent lately.
func (s *Sender) Purge(ctx context.Context) error {
	return pgpool.Exec(ctx, s.cfg.DB, "forget old letters", purgeSQL, keepSettled.Milliseconds())
}
