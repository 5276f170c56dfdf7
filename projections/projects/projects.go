// Package projects is the read model of projects and their settings.
package projects

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps a row per project. The signing secret stays in the
// log, sealed; only the times of its rotations get here.
var Projector = readmodel.New(readmodel.Spec{
	Name: "projects", Version: 9,
	Tables:  []consumer.Table{{Name: "projects", DDL: projectsDDL}},
	Handles: domain.TypesIn(project.Specs()),
	Apply:   apply,
})

// default_host is that of default_url, or empty (identity.Site), and folded_name is the name
// as it is searched (identity.Fold). events is null
// when the list was omitted (every kind), an array otherwise. rotations holds
// the newest last. header_names are those of the client's own headers; their values
// stay in the log, and so does the address of the chat.
const projectsDDL = `
CREATE TABLE {schema}.projects (
    id                  text PRIMARY KEY,
    account_id          text NOT NULL,
    name                text NOT NULL,
    description         text,
    default_url         text,
    default_host        text NOT NULL,
    folded_name         text NOT NULL DEFAULT '',
    default_job_type    text,
    default_sla_minutes integer,
    hook_hash           text NOT NULL UNIQUE,
    webhook_url         text NOT NULL,
    events              jsonb,
    disabled            boolean NOT NULL,
    disabled_by         text NOT NULL,
    disabled_reason     text NOT NULL,
    rotations           jsonb NOT NULL,
    secret_rotated_at   timestamptz,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,

    archived_at               timestamptz,
    loop_alerts_snoozed_until timestamptz,
    question_minutes          integer,
    keep_evidence_days        integer,
    keep_recordings_days      integer,
    held                      boolean NOT NULL DEFAULT false,
    header_names              jsonb NOT NULL DEFAULT '[]',
    headers_origin            text NOT NULL DEFAULT '',
    hook_scheme               text NOT NULL DEFAULT '',
    chat                      jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX projects_by_account ON {schema}.projects (account_id, created_at DESC, id DESC);
CREATE INDEX projects_by_host    ON {schema}.projects (account_id, default_host, (archived_at IS NOT NULL), created_at DESC, id DESC)
    WHERE default_host <> '';
`

type projectRow struct {
	ID                string                           `json:"id"`
	AccountID         string                           `json:"account_id"`
	Name              string                           `json:"name"`
	Description       *string                          `json:"description"`
	DefaultURL        *string                          `json:"default_url"`
	DefaultHost       string                           `json:"default_host"`
	FoldedName        string                           `json:"folded_name"`
	DefaultJobType    *string                          `json:"default_job_type"`
	DefaultSLAMinutes *int                             `json:"default_sla_minutes"`
	HookHash          string                           `json:"hook_hash"`
	WebhookURL        string                           `json:"webhook_url"`
	Events            *readmodel.List[string]          `json:"events"`
	Disabled          bool                             `json:"disabled"`
	DisabledBy        string                           `json:"disabled_by"`
	DisabledReason    string                           `json:"disabled_reason"`
	Rotations         readmodel.List[project.Rotation] `json:"rotations"`
	SecretRotatedAt   *time.Time                       `json:"secret_rotated_at"`
	CreatedAt         time.Time                        `json:"created_at"`
	UpdatedAt         time.Time                        `json:"updated_at"`

	ArchivedAt             *time.Time `json:"archived_at"`
	LoopAlertsSnoozedUntil *time.Time `json:"loop_alerts_snoozed_until"`
	QuestionMinutes        *int       `json:"question_minutes"`
	KeepEvidenceDays       *int       `json:"keep_evidence_days"`
	KeepRecordingsDays     *int       `json:"keep_recordings_days"`
	Held                   bool       `json:"held"`

	HeaderNames   readmodel.List[string] `json:"header_names"`
	HeadersOrigin string                 `json:"headers_origin"`
	HookScheme    string                 `json:"hook_scheme"`

	Chat readmodel.JSON[project.Chat] `json:"chat"`
}

// apply folds each project of the batch with the aggregate's own Evolve. Its facts that
// the row lacks (the secret) do not affect the row.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var ids []string
	for _, r := range batch {
		id := r.StreamID()
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	rows, err := readmodel.Load[projectRow](ctx, tx, schema, "projects", "id", ids)
	if err != nil {
		return err
	}
	states := map[string]project.State{}
	for _, row := range rows {
		states[row.ID] = row.state()
	}
	for _, r := range batch {
		id := r.StreamID()
		states[id] = project.Evolve(states[id], r.Event)
	}
	rows = rows[:0]
	for _, id := range ids {
		if s := states[id]; s.Exists { // else an operator skipped its project.created
			rows = append(rows, rowOf(id, s))
		}
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Upsert("projects", rows, "id"))
}

func (r projectRow) state() project.State {
	s := project.State{
		Exists: true, AccountID: r.AccountID, Name: r.Name, Description: r.Description,
		DefaultURL: r.DefaultURL, DefaultJobType: r.DefaultJobType, DefaultSLAMinutes: r.DefaultSLAMinutes,
		HookHash: r.HookHash, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, WebhookURL: r.WebhookURL, Events: (*[]string)(r.Events),
		Disabled: r.Disabled, DisabledBy: r.DisabledBy, DisabledReason: r.DisabledReason,
		SecretRotatedAt: r.SecretRotatedAt, LoopAlertsSnoozedUntil: r.LoopAlertsSnoozedUntil, QuestionMinutes: r.QuestionMinutes,
		ArchivedAt: r.ArchivedAt, HeadersOrigin: r.HeadersOrigin, HookSignature: project.HookSignature{Scheme: r.HookScheme},
		Rotations: r.Rotations, Chat: r.Chat.V,
		Keep: retention.Keep{EvidenceDays: r.KeepEvidenceDays, RecordingsDays: r.KeepRecordingsDays},
	}
	if r.Held {
		s.Hold = &retention.Hold{}
	}
	for _, name := range r.HeaderNames {
		s.Headers = append(s.Headers, project.OwnHeader{Name: name})
	}
	return s
}

func rowOf(id string, s project.State) projectRow {
	row := projectRow{
		ID: id, AccountID: s.AccountID, Name: s.Name, Description: s.Description,
		FoldedName: identity.Fold(s.Name), DefaultURL: s.DefaultURL, DefaultJobType: s.DefaultJobType,
		DefaultSLAMinutes: s.DefaultSLAMinutes,
		HookHash:          s.HookHash, WebhookURL: s.WebhookURL,
		Disabled: s.Disabled, DisabledBy: s.DisabledBy, DisabledReason: s.DisabledReason,
		CreatedAt: readmodel.Moment(s.CreatedAt), UpdatedAt: readmodel.Moment(s.UpdatedAt), QuestionMinutes: s.QuestionMinutes,
		SecretRotatedAt: readmodel.OptionalMoment(s.SecretRotatedAt), ArchivedAt: readmodel.OptionalMoment(s.ArchivedAt),
		LoopAlertsSnoozedUntil: readmodel.OptionalMoment(s.LoopAlertsSnoozedUntil),
		HeadersOrigin:          s.HeadersOrigin, HookScheme: s.HookSignature.Scheme,
		KeepEvidenceDays: s.Keep.EvidenceDays, KeepRecordingsDays: s.Keep.RecordingsDays, Held: s.Hold != nil,
	}
	if s.DefaultURL != nil {
		row.DefaultHost = identity.Site(*s.DefaultURL)
	}
	if s.Events != nil {
		row.Events = new(append(readmodel.List[string]{}, *s.Events...)) // never null: an empty list means no event
	}
	row.HeaderNames = append([]string{}, project.HeaderNames(s.Headers)...)
	row.Chat.V = s.Chat
	row.Chat.V.Sealed = ""
	row.Rotations = []project.Rotation{}
	for _, rotation := range s.Rotations {
		rotation.At = readmodel.Moment(rotation.At)
		row.Rotations = append(row.Rotations, rotation)
	}
	return row
}

// Reads reads projects. Every method is bound to one account.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Project is a project with the figures of its jobs.
type Project struct {
	ID                string
	AccountID         string
	Name              string
	Description       *string
	DefaultURL        *string
	DefaultJobType    *string
	DefaultSLAMinutes *int
	// WebhookURL is empty when none is configured. Events nil means every kind,
	// empty means none.
	WebhookURL      string
	Events          *[]string
	WebhookDisabled bool
	DisabledReason  string
	// SecretRotations are the five most recent ones, the newest first; nil when
	// no webhook is configured, empty when the secret was never replaced.
	SecretRotations []project.Rotation
	SecretRotatedAt *time.Time
	// HeaderNames are those of the client's own headers that deliveries to WebhookURL carry.
	HeaderNames []string
	// HookScheme is the signature that calls of the deploy hook need; empty: none.
	HookScheme string
	// Chat is where notices go, without its sealed address; the zero Chat: nowhere.
	Chat project.Chat
	// LoopAlertsSnoozedUntil holds loop_session.ended back; nil: it does not.
	LoopAlertsSnoozedUntil *time.Time
	// QuestionMinutes is how long a checker's question waits; nil: as long as usual.
	QuestionMinutes *int
	// Keep is how long the project's evidence is kept. Held says that a hold stops that.
	Keep retention.Keep
	Held bool

	JobCount       int
	CompletedCount int     // jobs with a report
	PassRate       float64 // passed / completed tests, 0..1; 0 without tests
	CreatedAt      time.Time
	UpdatedAt      time.Time
	ArchivedAt     *time.Time // nil: it is in use
}

// QuestionWait is how many minutes a checker's question waits; 0: it may not be asked.
func (p Project) QuestionWait() int {
	if p.QuestionMinutes != nil {
		return *p.QuestionMinutes
	}
	return int(job.QuestionWait.Minutes())
}

// HookTarget is the project that a deploy hook's token opens.
type HookTarget struct {
	AccountID string `json:"account_id"`
	ProjectID string `json:"id"`
	Suspended bool   `json:"suspended"` // the account is
	Sandbox   bool   `json:"sandbox"`   // the account is
}

const byHookSQL = `
SELECT p.account_id, p.id, a.suspended, a.sandbox
FROM readmodel.projects p
JOIN readmodel.accounts a ON a.account_id = p.account_id
WHERE p.hook_hash = $1`

// ByHook finds a project by the hash of its deploy hook's token.
func (q *Reads) ByHook(ctx context.Context, hash string) (HookTarget, bool, error) {
	return pgpool.Find[HookTarget](ctx, q.db, "a deploy hook", byHookSQL, hash)
}

var selectProjectsSQL = `
SELECT ` + readmodel.Columns[projectRow]("p.") + `,
       COALESCE(c.jobs, 0) AS jobs,
       COALESCE(c.completed, 0) AS completed,
       COALESCE(c.passed, 0) AS passed
FROM readmodel.projects p
LEFT JOIN (
    SELECT project_id,
           SUM(jobs) AS jobs,
           SUM(jobs) FILTER (WHERE status = 'completed') AS completed,
           SUM(passed) AS passed
    FROM readmodel.job_counts
    WHERE account_id = $1
    GROUP BY project_id) c ON c.project_id = p.id
WHERE p.account_id = $1`

var listProjectsSQL = selectProjectsSQL + `
  AND ($2 = '' OR p.id = $2)
  AND ($3::boolean IS NULL OR $3 = (p.archived_at IS NOT NULL))
ORDER BY p.created_at DESC, p.id DESC
LIMIT $4
OFFSET $5`

const totalProjectsSQL = `
SELECT COUNT(*)
FROM readmodel.projects p
WHERE p.account_id = $1
  AND ($2 = '' OR p.id = $2)
  AND ($3::boolean IS NULL OR $3 = (p.archived_at IS NOT NULL))`

var getProjectSQL = selectProjectsSQL + `
  AND p.id = $2`

type projectWithCounts struct {
	projectRow
	Counts
}

// Filter narrows a list of projects. Limit is required.
type Filter struct {
	ID       string // only this one; empty for all
	Archived *bool  // only those that are archived, or are not; nil for all
	Limit    int
	Offset   int
}

// List gives a page of the account's projects, the newest first, and how many
// there are on all pages.
func (q *Reads) List(ctx context.Context, accountID string, f Filter) ([]Project, int, error) {
	rows, total, err := readmodel.Page[projectWithCounts](ctx, q.db, "projects", totalProjectsSQL, listProjectsSQL,
		[]any{accountID, f.ID, f.Archived}, f.Limit, f.Offset)
	if err != nil {
		return nil, 0, err
	}
	projects := make([]Project, len(rows))
	for i, row := range rows {
		projects[i] = row.project()
	}
	return projects, total, nil
}

// Named is a project that was found by its name.
type Named struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	DefaultURL *string `json:"default_url"`
}

const namedSQL = `
SELECT id, name, default_url
FROM readmodel.projects
WHERE account_id = $1
  AND POSITION($2 IN folded_name) > 0
ORDER BY folded_name, id
LIMIT $3`

// Named finds the account's projects by a part of their name.
func (q *Reads) Named(ctx context.Context, accountID, part string, limit int) ([]Named, error) {
	return pgpool.List[Named](ctx, q.db, "projects by name", namedSQL, accountID, identity.Fold(part), limit)
}

// Get gives one project.
func (q *Reads) Get(ctx context.Context, accountID, id string) (Project, error) {
	row, err := readmodel.Get[projectWithCounts](ctx, q.db, "project", getProjectSQL, accountID, id)
	if err != nil {
		return Project{}, err
	}
	return row.project(), nil
}

// Counts are the figures of a project's jobs.
type Counts struct {
	ProjectID string `json:"project_id"`
	Jobs      int    `json:"jobs"`
	Completed int    `json:"completed"`
	Passed    int    `json:"passed"`
}

// Of is the read model's project for that state and these sums of its jobs. It is the
// same fold, without a table.
func Of(id string, s project.State, c Counts) Project {
	return projectWithCounts{rowOf(id, s), c}.project()
}

// IDs lists the account's projects, the newest first; or the one with that id.
func (q *Reads) IDs(ctx context.Context, accountID, id string) ([]string, error) {
	return pgpool.List[string](ctx, q.db, "the projects of "+accountID, projectIDsSQL, accountID, id)
}

const projectIDsSQL = `
SELECT id
FROM readmodel.projects
WHERE account_id = $1
  AND ($2 = '' OR id = $2)
ORDER BY created_at DESC, id DESC`

func (r projectWithCounts) project() Project {
	s := r.state()
	p := Project{
		ID: r.ID, AccountID: s.AccountID, Name: s.Name, Description: s.Description,
		DefaultURL: s.DefaultURL, DefaultJobType: s.DefaultJobType, DefaultSLAMinutes: s.DefaultSLAMinutes,
		WebhookURL: s.WebhookURL, Events: s.Events, WebhookDisabled: s.Disabled, DisabledReason: s.DisabledReason,
		HeaderNames: project.HeaderNames(s.SentHeaders()), HookScheme: s.HookSignature.Scheme, Chat: s.Chat,
		LoopAlertsSnoozedUntil: s.LoopAlertsSnoozedUntil, QuestionMinutes: s.QuestionMinutes,
		Keep: s.Keep, Held: s.Hold != nil,
		SecretRotatedAt: s.SecretRotatedAt, JobCount: r.Jobs, CompletedCount: r.Completed, CreatedAt: s.CreatedAt,
		UpdatedAt: s.UpdatedAt, ArchivedAt: s.ArchivedAt,
	}
	if r.Completed > 0 {
		p.PassRate = float64(r.Passed) / float64(r.Completed)
	}
	if s.WebhookURL != "" {
		p.SecretRotations = append([]project.Rotation{}, s.Rotations...)
		slices.Reverse(p.SecretRotations)
	}
	return p
}

// The last condition is implied; it lets the planner use the partial index.
const projectForHostSQL = `
SELECT id
FROM readmodel.projects
WHERE account_id = $1
  AND default_host = $2
  AND default_host <> ''
ORDER BY archived_at IS NOT NULL, created_at DESC, id DESC
LIMIT 1`

// ForHost finds the account's newest project whose default URL has the host. An archived one
// is found where there is no other.
func (q *Reads) ForHost(ctx context.Context, accountID, name string) (id string, found bool, err error) {
	return pgpool.Find[string](ctx, q.db, "the host's project", projectForHostSQL, accountID, name)
}
