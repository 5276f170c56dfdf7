package mail

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/internal/pgpool"
)

const (
	maxAddress = 254 // RFC 5321
	// confirmFor is how long the link holds that confirms an address.
	confirmFor = 7 * 24 * time.Hour
	// confirmsADay bounds the letters of confirmation that a person asks for, and those
	// that an address gets: it may be another person's.
	confirmsADay = 5
)

// Reports says of which reports a person hears.
type Reports string

// The choices of reports.
const (
	AllReports   Reports = "all"
	FailuresOnly Reports = "failures" // reports with a failed item, and tests that were given up
	NoReports    Reports = "none"
)

// Choices are the notices that a person wants of an account.
type Choices struct {
	Reports   Reports `db:"reports"`
	Questions bool    `db:"questions"` // a checker asks
	Credits   bool    `db:"credits"`   // credits became low
	Webhooks  bool    `db:"webhooks"`  // a webhook was disabled
}

// Person is where and whether letters go to a person.
type Person struct {
	Address     string     `db:"address"` // empty: none was given
	AskedAt     time.Time  `db:"asked_at"`
	ConfirmedAt *time.Time `db:"confirmed_at"`
	StoppedAt   *time.Time `db:"stopped_at"`
	// Trouble says why the last attempt failed, without addresses of the service's own;
	// empty: the server took the letter.
	Trouble string `db:"trouble"`
}

// Store keeps addresses and choices. Many goroutines may use it.
type Store struct {
	db    *sqlx.DB
	now   func() time.Time
	links Links
}

// NewStore makes a Store.
func NewStore(db *sqlx.DB, now func() time.Time, links Links) *Store { return &Store{db, now, links} }

func (s *Store) time() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

const personSQL = `
SELECT address, asked_at, confirmed_at, stopped_at, COALESCE((
    SELECT last_error
    FROM mail.letters l
    WHERE l.person_id = p.person_id
      AND attempt > 0
    ORDER BY created_at DESC
    LIMIT 1), '') AS trouble
FROM mail.people p
WHERE person_id = $1`

// Person gives where letters to the person go; the zero Person: nowhere.
func (s *Store) Person(ctx context.Context, personID string) (p Person, err error) {
	p, found, err := pgpool.Find[Person](ctx, s.db, "the address of a person", personSQL, personID)
	if err != nil || !found {
		return Person{}, err // sqlx has made a time for each pointer by then
	}
	if said, refused := strings.CutPrefix(p.Trouble, refusedMark); refused {
		p.Trouble = "the mail server refused it: " + said
	} else if p.Trouble != "" {
		p.Trouble = "the mail server did not take it"
	}
	return p, nil
}

const choicesSQL = `
SELECT reports, questions, credits, webhooks
FROM mail.choices
WHERE account_id = $1
  AND person_id = $2`

// Choices gives the person's choices for the account; none, until they choose.
func (s *Store) Choices(ctx context.Context, accountID, personID string) (Choices, error) {
	c, found, err := pgpool.Find[Choices](ctx, s.db, "the choices of a person", choicesSQL, accountID, personID)
	if err == nil && !found {
		c.Reports = NoReports
	}
	return c, err
}

// plainAddress matches what browsers take for an address, with at least one letter of a
// domain.
var plainAddress = regexp.MustCompile(`^[A-Za-z0-9.!#$%&'*+/=?^_{|}~-]+@[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// dialled gives an address with its domain as DNS sees it: servers without SMTPUTF8 take
// no other.
func dialled(address string) string {
	local, host, _ := strings.Cut(address, "@")
	if name, ok := identity.Host(host); ok {
		return local + "@" + name
	}
	return address
}

func checkAddress(address string) []domain.Detail {
	local, _, _ := strings.Cut(address, "@")
	if strings.ContainsFunc(local, func(r rune) bool { return r > unicode.MaxASCII }) {
		return []domain.Detail{{Path: "address", Message: "must have only the letters a to z, digits and signs before the @: few mail servers take others"}}
	}
	if len(address) > maxAddress || len(local) > 64 || !plainAddress.MatchString(address) {
		return []domain.Detail{{Path: "address", Message: "must be an address such as ann@example.com"}}
	}
	return nil
}

// A choice that was turned on covers only later events. A choice that was turned off ends
// the notices that are not in a letter yet.
const chooseSQL = `
WITH unwanted AS (
    DELETE FROM mail.notices
    WHERE person_id = $1
      AND account_id = $2
      AND letter_id IS NULL
      AND (kind = 'report' AND ($3 = 'none' OR $3 = 'failures' AND NOT failed) OR kind = 'question' AND NOT $4
        OR kind = 'credits' AND NOT $5 OR kind = 'webhook' AND NOT $6)
)
INSERT INTO mail.choices AS old (person_id, account_id, reports, questions, credits, webhooks, since)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (account_id, person_id) DO UPDATE
SET reports = EXCLUDED.reports, questions = EXCLUDED.questions, credits = EXCLUDED.credits, webhooks = EXCLUDED.webhooks,
    since = CASE
        WHEN old.reports = 'none' AND EXCLUDED.reports <> 'none' OR EXCLUDED.credits AND NOT old.credits
            OR EXCLUDED.webhooks AND NOT old.webhooks OR EXCLUDED.questions AND NOT old.questions THEN EXCLUDED.since
        ELSE old.since
    END`

const setAddressSQL = `
INSERT INTO mail.people AS old (person_id, address, asked_at)
VALUES ($1, $2, $3)
ON CONFLICT (person_id) DO UPDATE
SET address = EXCLUDED.address, stopped_at = NULL,
    asked_at = CASE WHEN old.address = EXCLUDED.address THEN old.asked_at ELSE EXCLUDED.asked_at END,
    confirmed_at = CASE WHEN old.address = EXCLUDED.address THEN old.confirmed_at END
RETURNING confirmed_at IS NULL AND asked_at = $3 AS unasked`

// Letters to another address are dropped, and their notices wait for the new one to be
// confirmed.
const releaseSQL = `
WITH kept AS (
    UPDATE mail.notices n
    SET letter_id = NULL
    FROM mail.letters l
    WHERE l.person_id = $1
      AND l.kind <> 'confirm'
      AND l.state = 'waiting'
      AND n.letter_id = l.id
    RETURNING l.id
)
UPDATE mail.letters
SET state = 'dropped', settled_at = now()
WHERE id IN (SELECT id FROM kept)`

// Save sets the person's address and their choices for the account. It ends a stop. An
// address that is new gets a letter with the link that confirms it. Invalid names the
// path: address, reports. Conflict: too many addresses in a day.
func (s *Store) Save(ctx context.Context, accountID, personID, address string, c Choices) error {
	address = dialled(address)
	wrong := checkAddress(address)
	if c.Reports != AllReports && c.Reports != FailuresOnly && c.Reports != NoReports {
		wrong = append(wrong, domain.Detail{Path: "reports", Message: "must be all, failures or none"})
	}
	if len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	now := s.time()
	return pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, chooseSQL, personID, accountID, c.Reports, c.Questions, c.Credits, c.Webhooks, now); err != nil {
			return fmt.Errorf("save the choices of a person: %w", err)
		}
		var unasked bool
		if err := tx.GetContext(ctx, &unasked, setAddressSQL, personID, address, now); err != nil {
			return fmt.Errorf("save the address of a person: %w", err)
		}
		if unasked {
			if _, err := tx.ExecContext(ctx, releaseSQL, personID); err != nil {
				return fmt.Errorf("keep the notices of letters to another address: %w", err)
			}
			return s.ask(ctx, tx, personID, address, now)
		}
		return nil
	})
}

const askAgainSQL = `
UPDATE mail.people
SET asked_at = $2
WHERE person_id = $1
  AND confirmed_at IS NULL
RETURNING address`

// AskAgain sends another link to an address that is not confirmed; earlier ones end.
func (s *Store) AskAgain(ctx context.Context, personID string) error {
	now := s.time()
	return pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		address, found, err := pgpool.Find[string](ctx, tx, "renew the link of an address", askAgainSQL, personID, now)
		if err != nil || !found {
			return err // it is confirmed, or there is none
		}
		return s.ask(ctx, tx, personID, address, now)
	})
}

// A letter with an older link is of no use any more.
const dropAsksSQL = `
UPDATE mail.letters
SET state = 'dropped', settled_at = $2
WHERE person_id = $1
  AND kind = 'confirm'
  AND state = 'waiting'`

const askSQL = `
INSERT INTO mail.letters (id, person_id, kind, created_at, due_at)
SELECT $1, $2, 'confirm', $3, $3
WHERE (
    SELECT count(*)
    FROM mail.letters
    WHERE person_id = $2
      AND kind = 'confirm'
      AND created_at > $4) < $5`

// The row of an address serialises those who ask for letters to it.
const countAskSQL = `
INSERT INTO mail.addresses AS old (mark, asked_at)
VALUES ($1, ARRAY[$2::timestamptz])
ON CONFLICT (mark) DO UPDATE
SET asked_at = ARRAY(SELECT t FROM unnest(old.asked_at) t WHERE t > $3) || $2::timestamptz
WHERE (SELECT count(*) FROM unnest(old.asked_at) t WHERE t > $3) < $4`

func (s *Store) ask(ctx context.Context, tx *sqlx.Tx, personID, address string, now time.Time) error {
	if err := pgpool.Exec(ctx, tx, "drop the links before", dropAsksSQL, personID, now); err != nil {
		return err
	}
	marks, day := s.links.marks(address), now.Add(-24*time.Hour)
	refused, err := refuses(ctx, tx, marks)
	if err != nil {
		return err
	}
	if refused {
		return domain.Conflict("the reader of this address wants no link").WithHint("give another address, or open the newest link that was sent there")
	}
	enough := domain.Conflict("%d links were sent today", confirmsADay).WithHint("open the newest one, or try again tomorrow")
	err = pgpool.ExecOne(ctx, tx, enough, "ask for a confirmation", askSQL, uuid.New(), personID, now, day, confirmsADay)
	if err != nil {
		return err
	}
	return pgpool.ExecOne(ctx, tx, enough, "count the links to an address", countAskSQL, marks[0], now, day, confirmsADay)
}

const refusesSQL = `
SELECT EXISTS (
    SELECT
    FROM mail.addresses
    WHERE mark = ANY($1)
      AND refused_at IS NOT NULL)`

// refuses says that the reader of the address wants no letter of confirmation.
func refuses(ctx context.Context, q sqlx.QueryerContext, marks []string) (bool, error) {
	return pgpool.One[bool](ctx, q, "what the reader of an address wants", refusesSQL, marks)
}

// ErrNoLink refuses a link that leads nowhere.
var ErrNoLink = domain.NotFound("link").WithHint("sign in and open Notifications to get a new one")

// Confirming gives the address that the link confirms; ErrNoLink where it does not.
func (s *Store) Confirming(ctx context.Context, token string) (personID, address string, err error) {
	if personID = subjectOf(token); personID == "" {
		return "", "", ErrNoLink
	}
	p, err := s.Person(ctx, personID)
	if err != nil {
		return "", "", err
	}
	if p.Address == "" || s.time().Sub(p.AskedAt) > confirmFor ||
		!s.links.proves(token, useConfirm, personID, confirmed(p.Address, p.AskedAt)) {
		return "", "", ErrNoLink
	}
	return personID, p.Address, nil
}

const confirmSQL = `
WITH welcome AS (
    UPDATE mail.addresses
    SET refused_at = NULL
    WHERE mark = ANY($4)
)
UPDATE mail.people
SET confirmed_at = COALESCE(confirmed_at, $3)
WHERE person_id = $1
  AND address = $2`

// Confirm notes that the address is the person's. Its reader takes letters again. A repeat
// has no further effect.
func (s *Store) Confirm(ctx context.Context, token string) error {
	personID, address, err := s.Confirming(ctx, token)
	if err != nil {
		return err
	}
	return pgpool.Exec(ctx, s.db, "confirm an address", confirmSQL, personID, address, s.time(), s.links.marks(address))
}

// Stops says what the link stops: all e-mail to a person, or else letters of confirmation to
// an address, whose mark the subject is. ErrNoLink: it stops nothing.
func (s *Store) Stops(token string) (subject string, all bool, err error) {
	subject = subjectOf(token)
	switch {
	case subject == "":
	case s.links.proves(token, useStop, subject, ""):
		return subject, true, nil
	case s.links.proves(token, useRefuse, subject, ""):
		return subject, false, nil
	}
	return "", false, ErrNoLink
}

// Letters and notices that were not sent yet are not sent any more.
const stopSQL = `
WITH stopped AS (
    UPDATE mail.people
    SET stopped_at = COALESCE(stopped_at, $2)
    WHERE person_id = $1
), letters AS (
    UPDATE mail.letters
    SET state = 'dropped', settled_at = $2
    WHERE person_id = $1
      AND state = 'waiting'
)
DELETE FROM mail.notices
WHERE person_id = $1
  AND letter_id IS NULL`

const refuseSQL = `
INSERT INTO mail.addresses AS old (mark, asked_at, refused_at)
VALUES ($1, '{}', $2)
ON CONFLICT (mark) DO UPDATE
SET refused_at = COALESCE(old.refused_at, EXCLUDED.refused_at)`

// Stop ends what the link stops: all e-mail to its person, until they save their choices
// again, or letters of confirmation to its address, until one is confirmed.
func (s *Store) Stop(ctx context.Context, token string) error {
	subject, all, err := s.Stops(token)
	switch {
	case err != nil:
		return err
	case all:
		return pgpool.Exec(ctx, s.db, "stop the e-mail to a person", stopSQL, subject, s.time())
	}
	return pgpool.Exec(ctx, s.db, "stop the links to an address", refuseSQL, subject, s.time())
}
