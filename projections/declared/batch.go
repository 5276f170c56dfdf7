package declared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
)

// batchSQL makes the relation that apply reads. current_setting holds the batch, so that its
// rows are written nowhere.
const batchSQL = `
CREATE VIEW batch AS
SELECT *
FROM json_to_recordset(current_setting('humanqa.batch')::json) AS b (
    position bigint, stream text, revision bigint, type text, at timestamptz, actor text,
    account_id text, project_id text, job_id text, data jsonb)`

// batchRow is a row of the relation.
type batchRow struct {
	Position  uint64          `json:"position"`
	Stream    string          `json:"stream"`
	Revision  uint64          `json:"revision"`
	Type      string          `json:"type"`
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor"`
	AccountID string          `json:"account_id,omitempty"`
	ProjectID string          `json:"project_id,omitempty"`
	JobID     string          `json:"job_id,omitempty"`
	Data      json.RawMessage `json:"data"`
}

// firsts are the first events of the streams that belong to an account by what these say, by
// the family of their events.
var firsts = map[string]string{"job": "job.created", "session": "session.created", "loop": "loop.started", "project": "project.created"}

// owner is the account and the project of a stream; empty where it has none.
type owner struct{ accountID, projectID string }

// ownerIn is the owner that the first event of a stream names.
func ownerIn(first domain.Recorded) owner {
	switch e := first.Event.(type) {
	case *job.Created:
		return owner{e.AccountID, e.ProjectID}
	case *job.Voided:
		return owner{accountID: e.AccountID}
	case *session.Created:
		return owner{e.AccountID, e.ProjectID}
	case *loop.Started:
		return owner{e.AccountID, e.ProjectID}
	case *project.Created:
		return owner{e.AccountID, first.StreamID()}
	}
	return owner{}
}

// Owners finds the owners of streams, and remembers those that were met last. A stream's owner
// never changes, so a batch has the same rows whenever it is read.
type Owners struct {
	source consumer.Source
	known  *lru.Cache[string, owner]
}

// remembered is how many owners are in memory: the jobs of some days.
const remembered = 50_000

// NewOwners looks owners up in the log.
func NewOwners(source consumer.Source) *Owners {
	known, _ := lru.New[string, owner](remembered) // the size is positive
	return &Owners{source: source, known: known}
}

var errFound = errors.New("found")

// of is the owner of an event's stream.
func (o *Owners) of(ctx context.Context, r domain.Recorded, family string) (found owner, err error) {
	switch family {
	case "account", "credits":
		return owner{accountID: r.StreamID()}, nil
	case "job", "session", "loop", "project":
	default:
		return owner{accountID: r.Meta.AccountID}, nil
	}
	if known, ok := o.known.Get(r.Stream); ok {
		return known, nil
	}
	read := func(first domain.Recorded) error {
		found = ownerIn(first)
		return errFound
	}
	if r.Revision == 0 {
		err = read(r)
	} else {
		err = o.source.Load(ctx, r.Stream, 0, read)
	}
	if err != nil && !errors.Is(err, errFound) {
		return found, fmt.Errorf("read the owner of %s: %w", r.Stream, err)
	}
	o.known.Add(r.Stream, found)
	return found, nil
}

// rows gives the batch as JSON; nil where none of its events is wanted.
func (o *Owners) rows(ctx context.Context, types []string, batch []domain.Recorded) ([]byte, error) {
	var rows []batchRow
	for _, r := range batch {
		family, _, _ := strings.Cut(r.Stream, "-")
		of, err := o.of(ctx, r, family)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(types, r.Type) {
			continue
		}
		data, err := eventstore.WithoutSealed(r.Event)
		if err != nil {
			return nil, fmt.Errorf("encode %s of %s: %w", r.Type, r.Stream, err)
		}
		rows = append(rows, batchRow{
			Position: r.Position.Commit, Stream: r.Stream, Revision: r.Revision, Type: r.Type, At: r.Meta.Time, Actor: r.Meta.Actor,
			AccountID: of.accountID, ProjectID: of.projectID, JobID: jobOf(r, family), Data: data,
		})
	}
	if rows == nil {
		return nil, nil
	}
	return json.Marshal(rows)
}

// jobOf is the job that the event or its stream names.
func jobOf(r domain.Recorded, family string) string {
	switch e := r.Event.(type) {
	case *credits.Debited:
		return e.JobID
	case *credits.Refunded:
		return e.JobID
	}
	if family == "job" {
		return r.StreamID()
	}
	return ""
}
