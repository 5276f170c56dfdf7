// Package people is the read model of people with a sign-in, and their roles.
package people

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps the people that may sign in, and their roles. The names of people
// are not in the log (internal/credential).
var Projector = readmodel.New(readmodel.Spec{
	Name: "people", Version: 1,
	Tables: []consumer.Table{
		{Name: "people", DDL: peopleDDL},
		{Name: "person_roles", DDL: personRolesDDL},
	},
	Handles: domain.TypesIn(person.Specs()),
	Apply:   readmodel.Each(change),
})

const peopleDDL = `
CREATE TABLE {schema}.people (
    person_id  text PRIMARY KEY,
    invited_at timestamptz NOT NULL,
    joined_at  timestamptz,
    disabled   boolean NOT NULL
);
`

const personRolesDDL = `
CREATE TABLE {schema}.person_roles (
    person_id  text NOT NULL,
    account_id text NOT NULL,
    role       text NOT NULL,
    checker_id text NOT NULL,
    PRIMARY KEY (person_id, account_id, role)
);
CREATE INDEX person_roles_by_account ON {schema}.person_roles (account_id) WHERE account_id <> '';
CREATE INDEX person_roles_by_checker ON {schema}.person_roles (checker_id) WHERE checker_id <> '';
`

const joinPersonSQL = `
UPDATE {schema}.people
SET joined_at = $2
WHERE person_id = $1`

const disablePersonSQL = `
UPDATE {schema}.people
SET disabled = TRUE
WHERE person_id = $1`

// A role of an account replaces the person's earlier role there.
const grantSQL = `replaced AS (
    DELETE FROM {schema}.person_roles
    WHERE person_id = $1
      AND account_id = $2
      AND account_id <> ''
      AND role <> $3
)
INSERT INTO {schema}.person_roles (person_id, account_id, role, checker_id)
VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING`

const grantRoleSQL = `
WITH ` + grantSQL

const invitePersonSQL = `
WITH invited AS (
    INSERT INTO {schema}.people (person_id, invited_at, disabled)
    VALUES ($1, $5, FALSE)
), ` + grantSQL

const revokeRoleSQL = `
DELETE FROM {schema}.person_roles
WHERE person_id = $1
  AND account_id = $2
  AND role = $3`

// change writes event by event: people change rarely.
func change(r domain.Recorded) (query string, args []any) {
	id, at := r.StreamID(), readmodel.Moment(r.Meta.Time)
	switch e := r.Event.(type) {
	case *person.Invited:
		return invitePersonSQL, []any{id, e.AccountID, e.Role, e.CheckerID, at}
	case *person.Joined:
		return joinPersonSQL, []any{id, at}
	case *person.RoleGranted:
		return grantRoleSQL, []any{id, e.AccountID, e.Role, e.CheckerID}
	case *person.RoleRevoked:
		return revokeRoleSQL, []any{id, e.AccountID, e.Role}
	case *person.Disabled:
		return disablePersonSQL, []any{id}
	}
	return "", nil
}

// Reads gives people and their roles.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Person is a person that may sign in, now or after joining.
type Person struct {
	ID        string       `json:"person_id"`
	InvitedAt time.Time    `json:"invited_at"`
	JoinedAt  *time.Time   `json:"joined_at"` // nil: the person has not accepted the invitation
	Disabled  bool         `json:"disabled"`
	Roles     []PersonRole `json:"-"` // in rows of their own
}

// Grants are the person's roles, without the facts about their accounts.
func (p Person) Grants() (grants []person.Grant) {
	for _, r := range p.Roles {
		grants = append(grants, r.Grant)
	}
	return grants
}

// PersonRole is a role and where it holds; for a role of an account, also the facts about
// that account.
type PersonRole struct {
	person.Grant
	Account Account
}

// Account is an account as the people in it see it.
type Account struct {
	ID        string `json:"account_id"`
	Name      string `json:"name"`
	Sandbox   bool   `json:"sandbox"`
	Suspended bool   `json:"suspended"`
}

const personSQL = `
SELECT p.person_id, p.invited_at, p.joined_at, p.disabled,
       COALESCE(r.role, '') AS role, COALESCE(r.account_id, '') AS account_id, COALESCE(r.checker_id, '') AS checker_id,
       COALESCE(a.name, '') AS name, COALESCE(a.sandbox, FALSE) AS sandbox, COALESCE(a.suspended, FALSE) AS suspended
FROM readmodel.people p
LEFT JOIN readmodel.person_roles r ON r.person_id = p.person_id
LEFT JOIN readmodel.accounts a ON a.account_id = r.account_id`

const onePersonSQL = personSQL + `
WHERE p.person_id = $1
ORDER BY a.name, r.account_id, r.role`

const membersSQL = personSQL + `
WHERE r.account_id = $1
  AND r.account_id <> ''
  AND NOT p.disabled
ORDER BY p.invited_at, p.person_id`

const anyOperatorSQL = `
SELECT EXISTS (
    SELECT
    FROM readmodel.person_roles r
    JOIN readmodel.people p ON p.person_id = r.person_id
    WHERE r.role = 'operator'
      AND NOT p.disabled
      AND (p.joined_at IS NOT NULL OR NOT $1))`

// Person gives one person with their roles, a disabled one too.
func (q *Reads) Person(ctx context.Context, id string) (Person, error) {
	people, err := q.list(ctx, "person "+id, onePersonSQL, id)
	switch {
	case err != nil:
		return Person{}, err
	case len(people) == 0:
		return Person{}, domain.NotFound("person")
	}
	return people[0], nil
}

// Members gives the people of the account, people that have not joined yet too,
// each with their role there. The first invited comes first.
func (q *Reads) Members(ctx context.Context, accountID string) ([]Person, error) {
	return q.list(ctx, "the members of "+accountID, membersSQL, accountID)
}

const everSQL = `
SELECT DISTINCT person_id
FROM readmodel.person_roles
WHERE account_id = $1
  AND account_id <> ''`

// Ever lists the people that have a role in the account, also those that were disabled since.
func (q *Reads) Ever(ctx context.Context, accountID string) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the people of "+accountID, everSQL, accountID)
}

// AnyOperator says whether a person runs the service, or was invited
// to.
func (q *Reads) AnyOperator(ctx context.Context, joined bool) (bool, error) {
	return readmodel.Get[bool](ctx, q.db, "whether there is an operator", anyOperatorSQL, joined)
}

// list reads people from rows of one role each.
func (q *Reads) list(ctx context.Context, what, query, arg string) (people []Person, err error) {
	rows, err := pgpool.List[struct {
		Person
		Account
		Role      person.Role `json:"role"`
		CheckerID string      `json:"checker_id"`
	}](ctx, q.db, what, query, arg)
	for _, r := range rows {
		if n := len(people); n == 0 || people[n-1].ID != r.Person.ID {
			people = append(people, r.Person)
		}
		if r.Role != "" {
			last := &people[len(people)-1]
			grant := person.Grant{Role: r.Role, AccountID: r.Account.ID, CheckerID: r.CheckerID}
			last.Roles = append(last.Roles, PersonRole{Grant: grant, Account: r.Account})
		}
	}
	return people, err
}
