package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/internal/blob"
	"humanqa/internal/checkup"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

// fsckCmd checks the invariants on live data: the log against itself and
// against what was signed, and the rows of every read model against a fold of
// the log made anew.
type fsckCmd struct {
	Against []string `type:"existingfile" placeholder:"CHECKPOINT" help:"A checkpoint of the log that somebody kept (humanqa audit checkpoint); may be given several times."`
}

// checked is what fsck answers.
type checked struct {
	Events   int             `json:"events"`
	Jobs     int             `json:"jobs"`
	Findings []audit.Finding `json:"findings"`
}

func (f *fsckCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		out, err := fsck(ctx, c, a.log, untold, f.Against...)
		if err != nil {
			return err
		}
		return a.printChecked(out, out, "")
	})
}

// printChecked tells the findings and counts, after what led to them; findings
// are an error.
func (a *app) printChecked(out checked, object any, before string) error {
	for _, f := range out.Findings {
		if !a.json {
			if err := a.print(nil, "%s", f); err != nil {
				return err
			}
		}
	}
	if err := a.print(object, "%s%d events, %d jobs, %d findings", before, out.Events, out.Jobs, len(out.Findings)); err != nil {
		return err
	}
	if n := len(out.Findings); n > 0 {
		return fmt.Errorf("%d invariants do not hold: keep the data directory as it is and report the lines above", n)
	}
	return nil
}

// toldEvery is after how many events a check says how far it is.
const toldEvery = 1000

// untold is for checks that nobody watches.
func untold(string, int) {}

// fsck reads the log once, and tells what it is at. against names files of
// checkpoints.
func fsck(ctx context.Context, c *core, logger logrus.FieldLogger, tell checkup.Progress, against ...string) (checked, error) {
	return fsckModels(ctx, c, logger, tell, projections.Names(), against...)
}

// fsckModels is fsck that looks at some of the read models.
func fsckModels(ctx context.Context, c *core, logger logrus.FieldLogger, tell checkup.Progress, models []string, against ...string) (checked, error) {
	log := audit.New()
	references := httpapi.EvidenceReferences{DB: c.db}
	out := checked{Findings: []audit.Finding{}}
	err := c.withCheck(ctx, against, func(check *auditlog.Check) error {
		return auditlog.Each(ctx, c.log, func(e eventstore.RawEvent) error {
			r, err := e.Decode()
			if err != nil {
				r = e.Recorded()
				out.Findings = append(out.Findings, audit.Finding{Invariant: 13, Stream: e.Stream, Problem: err.Error()})
			}
			log.See(r)
			if log.Events%toldEvery == 1 {
				tell("reading the log", log.Events)
			}
			if err := references.See(ctx, r); err != nil {
				return err
			}
			return check.See(ctx, e)
		})
	}, func(_ *auditlog.Check, findings []audit.Finding) { out.Findings = append(out.Findings, findings...) })
	if err != nil {
		return checked{}, err
	}
	now, err := c.auditedAt(ctx)
	if err != nil {
		return checked{}, err
	}
	out.Events, out.Jobs = log.Events, log.Jobs
	out.Findings = append(out.Findings, log.Findings(now)...)
	tell("looking for evidence", out.Events)
	if err := c.auditEvidence(ctx, &out); err != nil {
		return checked{}, err
	}
	if err := c.auditReferences(ctx, &references, log, &out); err != nil {
		return checked{}, err
	}

	tell("comparing the rows of the read models", out.Events)
	feed := eventstore.NewFeed(c.log, logger) // not run: it then reads pages
	supervisor := consumer.New(c.db, feed, logger, projections.All()...)
	differences, err := supervisor.VerifyAll(ctx, models)
	if err != nil {
		return checked{}, err
	}
	aside, err := setAside(ctx, c, models)
	if err != nil {
		return checked{}, err
	}
	for i, name := range models {
		out.Findings = append(out.Findings, findingsOf(name, differences[i])...)
	}
	out.Findings = append(out.Findings, aside...)
	return out, nil
}

// setAside tells of the streams that read models go on without.
func setAside(ctx context.Context, c *core, models []string) (found []audit.Finding, err error) {
	all, err := consumer.List(ctx, c.db)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if !s.Serving || !slices.Contains(models, s.Name) {
			continue
		}
		for _, a := range s.SetAside {
			found = append(found, audit.Finding{Invariant: 9, Stream: a.Stream, Problem: fmt.Sprintf(
				"the read model %s has set the stream aside, from its %s at %s on (%s): %s", s.Name, a.Type, a.Position, a.Category, oneLine(a.Detail))})
		}
	}
	return found, nil
}

// rowLines bounds what is told of one row.
const rowLines = 9

// findingsOf tells of the rows that a read model and the fold of the log do not
// both have: where both have a row of that key, which fields differ.
func findingsOf(name string, differences []consumer.Difference) []audit.Finding {
	type row struct{ table, key string }
	var order []row
	both := map[row][2]map[string]json.RawMessage{} // the read model's, the fold's
	for _, d := range differences {
		var columns map[string]json.RawMessage
		if json.Unmarshal([]byte(d.Row), &columns) != nil {
			continue // it was written by Postgres
		}
		of := row{d.Table, d.Key}
		pair, seen := both[of]
		if !seen {
			order = append(order, of)
		}
		if d.InFold {
			pair[1] = columns
		} else {
			pair[0] = columns
		}
		both[of] = pair
	}
	var found []audit.Finding
	for _, of := range order {
		is, should := both[of][0], both[of][1]
		f := audit.Finding{Invariant: 9, Stream: streamOf(name, is, should)}
		switch {
		case should == nil:
			f.Problem = fmt.Sprintf("the read model %s has a row of %s that the fold of the log lacks: %s", name, of.table, of.key)
		case is == nil:
			f.Problem = fmt.Sprintf("the fold of the log has a row of %s that the read model %s lacks: %s", of.table, name, of.key)
		default:
			f.Problem = fmt.Sprintf("the read model %s has a row of %s that is not the fold's: %s%s", name, of.table, of.key, fieldsOf(is, should))
		}
		found = append(found, f)
	}
	return found
}

// fieldsOf is a line for each field that differs.
func fieldsOf(is, should map[string]json.RawMessage) string {
	var lines []string
	for _, field := range slices.Sorted(maps.Keys(should)) {
		if string(is[field]) != string(should[field]) {
			lines = append(lines, fmt.Sprintf("\n  %s: is %s, the log says %s", field, shortened(is[field]), shortened(should[field])))
		}
	}
	if more := len(lines) - rowLines; more > 0 {
		lines = append(lines[:rowLines-1], fmt.Sprintf("\n  and %d more fields", more+1))
	}
	return strings.Join(lines, "")
}

// shortened keeps a value to what fits into a line.
func shortened(value json.RawMessage) string {
	const most = 120
	text := []rune(oneLine(string(value)))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// streamOf is the stream that a row of a read model is about; the read model's
// name where the row does not tell.
func streamOf(name string, rows ...map[string]json.RawMessage) string {
	own := map[string]string{
		"jobs": domain.JobStreams, "projects": domain.ProjectStreams, "sessions": domain.SessionStreams,
	}
	for _, row := range rows {
		value := func(column string) (s string) {
			if json.Unmarshal(row[column], &s) != nil {
				return ""
			}
			return s
		}
		id, category := value("id"), own[name]
		switch {
		case value("stream") != "":
			return value("stream")
		case category != "" && id != "":
			return category + id
		case value("job_id") != "" && name != "ledger":
			return domain.JobStream(value("job_id"))
		case value("account_id") != "" && (name == "ledger" || name == "credits"):
			return domain.CreditsStream(value("account_id"))
		case value("project_id") != "":
			return domain.ProjectStream(value("project_id"))
		}
	}
	return name
}

// auditedAt is the moment to judge deadlines by. A service that is stopped
// settles nothing: what it owed when it stopped, or when its backup was taken,
// it still has its time for.
func (c *core) auditedAt(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if c.served || c.serves || c.node == nil {
		return now, nil
	}
	_, last, err := node.Head(ctx, c.db)
	if err != nil || last.After(now) {
		return now, err
	}
	return last, nil
}

// auditEvidence looks for the file of every piece of evidence, where they are in
// a directory.
func (c *core) auditEvidence(ctx context.Context, out *checked) error {
	dir, ok := blob.Path(c.cfg.EvidenceURL)
	if !ok {
		return nil
	}
	return httpapi.StoredEvidence(ctx, c.db, func(jobID, key string, size int64) error {
		if lost(filepath.Join(dir, filepath.FromSlash(key)), size) {
			out.Findings = append(out.Findings, audit.Finding{
				Invariant: 20, Stream: domain.JobStream(jobID), Problem: "the file of evidence " + key + " is lost",
			})
		}
		return nil
	})
}

// auditReferences tells of evidence that events refer to and nobody has any more,
// but for accounts that were erased.
func (c *core) auditReferences(ctx context.Context, references *httpapi.EvidenceReferences, log *audit.Audit, out *checked) error {
	lost, err := references.Lost(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	erased, err := c.vault.Shredded(ctx)
	if err != nil {
		return err
	}
	for _, l := range lost {
		if !erased[log.AccountOf(l.JobID)] {
			out.Findings = append(out.Findings, audit.Finding{
				Invariant: 20, Stream: domain.JobStream(l.JobID), Problem: "an event refers to evidence " + l.ID + ", which has no row",
			})
		}
	}
	return nil
}
