// Package activity is the read model of the facts with an author. People, keys, hooks and
// operators acted in an account, and its checkers saw secrets.
package activity

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps a row for each fact, without texts.
var Projector = readmodel.New(readmodel.Spec{
	Name: "activity", Version: 1,
	Tables:  []consumer.Table{{Name: "activity", DDL: activityDDL, Indexes: activityIndexes}},
	Handles: Kinds(),
	Apply:   apply,
})

// Kinds lists the types of the events that are facts. The template "fact" of the dashboard
// has their words.
func Kinds() []string {
	return domain.TypesOf((*job.Created)(nil), (*job.Cancelled)(nil), (*job.AnswerGiven)(nil), (*job.Rated)(nil), (*job.SecretShown)(nil),
		(*job.Disputed)(nil), (*job.DisputeDecided)(nil), (*job.HoldPlaced)(nil), (*job.HoldReleased)(nil),
		(*project.Created)(nil), (*project.SettingsChanged)(nil), (*project.Archived)(nil), (*project.Restored)(nil),
		(*project.WebhookSet)(nil), (*project.WebhookCleared)(nil), (*project.SecretSet)(nil), (*project.WebhookHeadersSet)(nil),
		(*project.WebhookDisabled)(nil), (*project.WebhookEnabled)(nil), (*project.RegressionsPrepared)(nil), (*project.HookRotated)(nil),
		(*project.HookSignatureSet)(nil), (*project.ChatSet)(nil), (*project.HoldPlaced)(nil), (*project.HoldReleased)(nil),
		(*account.KeyIssued)(nil), (*account.KeyRevoked)(nil), (*account.RetentionChanged)(nil), (*account.HoldPlaced)(nil),
		(*account.HoldReleased)(nil), (*account.Suspended)(nil), (*account.Reinstated)(nil), (*account.SubmissionsRefused)(nil),
		(*person.Invited)(nil), (*person.RoleGranted)(nil), (*person.RoleRevoked)(nil), (*credits.LowSet)(nil))
}

const activityDDL = `
CREATE TABLE {schema}.activity (
    position   bigint NOT NULL,
    revision   bigint NOT NULL,
    at         timestamptz NOT NULL,
    account_id text NOT NULL,
    project_id text NOT NULL,
    stream     text NOT NULL,
    kind       text NOT NULL,
    author     text NOT NULL,
    detail     text NOT NULL,
    PRIMARY KEY (stream, revision)
);
`

const activityIndexes = `
CREATE INDEX activity_by_account ON {schema}.activity (account_id, position DESC);
CREATE INDEX activity_by_author  ON {schema}.activity (account_id, author, position DESC);
CREATE INDEX activity_by_project ON {schema}.activity (account_id, project_id, position DESC) WHERE project_id <> '';
CREATE INDEX activity_by_kind    ON {schema}.activity (account_id, kind, position DESC);
`

// Fact is an event with its author, an actor as the account may know it: "key:<id>",
// "person:<id>", "hook:<project id>", "operator", "checker:<pseudonym>", or a part of the
// service. Detail is a kind of secret, a rating, a key as an actor, or a role.
type Fact struct {
	Position  int64     `json:"position"` // of the log's commit
	Revision  uint64    `json:"revision"`
	At        time.Time `json:"at"`
	AccountID string    `json:"account_id"`
	ProjectID string    `json:"project_id"`
	Stream    string    `json:"stream"`
	Kind      string    `json:"kind"`
	Author    string    `json:"author"`
	Detail    string    `json:"detail"`
}

// A job and a project name their account in their first event only.
const insertLaterSQL = `
INSERT INTO {schema}.activity
SELECT r.position, r.revision, r.at, first.account_id, first.project_id, r.stream, r.kind, r.author, r.detail
FROM json_populate_recordset(NULL::{schema}.activity, $1) r
JOIN {schema}.activity first
  ON first.stream = r.stream
 AND first.revision = 0`

// apply writes a row an event.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var named, later []Fact
	for _, r := range batch {
		f := Fact{
			Position: int64(r.Position.Commit), Revision: r.Revision, At: readmodel.Moment(r.Meta.Time), Stream: r.Stream,
			Kind: r.Type, Author: r.Meta.Actor,
		}
		if strings.HasPrefix(f.Author, "operator") { // the account may not know which one
			f.Author = "operator"
		}
		switch f.describe(r); {
		case f.AccountID != "":
			named = append(named, f)
		case !strings.HasPrefix(r.Stream, domain.PersonStreams): // a role that is not of an account
			later = append(later, f)
		}
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Append("activity", named), readmodel.Write("insert activity", insertLaterSQL, later))
}

// describe adds the account, where the event or its stream names it, and the detail.
func (f *Fact) describe(r domain.Recorded) {
	if strings.HasPrefix(r.Stream, domain.AccountStreams) || strings.HasPrefix(r.Stream, domain.CreditsStreams) {
		f.AccountID = r.StreamID()
	}
	switch e := r.Event.(type) {
	case *job.Created:
		f.AccountID, f.ProjectID = e.AccountID, e.ProjectID
	case *project.Created:
		f.AccountID, f.ProjectID = e.AccountID, r.StreamID()
	case *job.SecretShown:
		f.Author, f.Detail = "checker:"+e.Checker, e.Kind
	case *job.DisputeDecided:
		f.Detail = string(e.Decision)
	case *account.SubmissionsRefused:
		refused := 0
		for _, c := range e.Counts {
			refused += c.Tests
		}
		f.Detail = strconv.Itoa(refused)
	case *job.Rated:
		f.Detail = strconv.Itoa(e.Rating)
	case *account.KeyIssued:
		f.Detail = "key:" + e.KeyID
	case *account.KeyRevoked:
		f.Detail = "key:" + e.KeyID
	case *person.Invited:
		f.AccountID, f.Detail = e.AccountID, string(e.Role)
	case *person.RoleGranted:
		f.AccountID, f.Detail = e.AccountID, string(e.Role)
	case *person.RoleRevoked:
		f.AccountID, f.Detail = e.AccountID, string(e.Role)
	}
}

// Reads reads the facts. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Filter narrows a list; empty fields don't.
type Filter struct {
	ProjectID string
	Author    string
	Kind      string
	Stream    string
	Limit     int
	Offset    int
}

// Titled is a fact with the title of its job, or the name of its project.
type Titled struct {
	Fact
	Title string `json:"title"`
}

var listSQL = `
SELECT ` + readmodel.Columns[Fact]("a.") + `, COALESCE(j.title, p.name, '') AS title
FROM readmodel.activity a
LEFT JOIN readmodel.jobs j
  ON a.stream LIKE 'job-%'
 AND j.id = substr(a.stream, 5)
 AND j.account_id = a.account_id
LEFT JOIN readmodel.projects p
  ON a.stream LIKE 'project-%'
 AND p.id = a.project_id
 AND p.account_id = a.account_id
WHERE a.account_id = $1
  AND ($2 = '' OR a.project_id = $2)
  AND ($3 = '' OR a.author = $3)
  AND ($4 = '' OR a.kind = $4)
  AND ($5 = '' OR a.stream = $5)
ORDER BY a.position DESC, a.revision DESC
LIMIT $6
OFFSET $7`

// List gives the account's facts, the newest first.
func (q *Reads) List(ctx context.Context, accountID string, f Filter) ([]Titled, error) {
	return pgpool.List[Titled](ctx, q.db, "the activity of "+accountID, listSQL,
		accountID, f.ProjectID, f.Author, f.Kind, f.Stream, f.Limit, f.Offset)
}
