// Package fsck checks the invariants on live data. It compares the log with itself and
// with its signed checkpoints, and looks for the files of the evidence. It compares the
// rows of every read model with a new fold of the log.
//
// A stopped service owes nothing new, so fsck then judges by the time of the log's last
// event.
package fsck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/audit"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi/evidence"
	"humanqa/internal/blob"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/auditlog"
)

// Installation is the subject of a check: a log, the database beside it, and the evidence.
type Installation struct {
	DB          *sqlx.DB
	Lent        *sqlx.DB // connections of DB, for the transactions that last as long as a check
	Log         *eventstore.Client
	Vault       *vault.Vault
	Signer      *auditlog.Signer
	EvidenceURL string
	Notes       string // the file that notes how far the look for evidence came
	Embedded    bool   // the log is in DB
	// Now is the moment to judge deadlines by.
	Now func(context.Context) (time.Time, error)
	// Gently leaves three quarters of the time to the service beside the check.
	Gently bool
}

// Result is the outcome of a check.
type Result struct{ invariantcheck.Result }

func (r *Result) find(invariant int, stream, format string, args ...any) {
	r.Findings = append(r.Findings, audit.Finding{Invariant: invariant, Stream: stream, Problem: fmt.Sprintf(format, args...)})
}

// tellClosed reports streams whose texts do not open: once, since behind a new database it is
// every stream with a text.
func (r *Result) tellClosed(first string, further int) {
	as := ""
	if further > 0 {
		as = fmt.Sprintf(", as in %d further streams", further)
	}
	if first != "" {
		r.find(13, first, "%v%s: restore table vault.subject_keys from a backup", domain.ErrKeyLost, as)
	}
}

// toldEvery is the number of events between two reports of progress.
const toldEvery = 1000

// NoProgress is for checks whose progress is not shown.
func NoProgress(string, int) {}

// Check reads the log once, and reports its progress. models are the read models whose rows
// are compared with the log, and against names files of checkpoints.
func (i Installation) Check(
	ctx context.Context, logger logrus.FieldLogger, tell invariantcheck.Progress, models []string, against ...string,
) (Result, error) {
	log := audit.New()
	references := evidence.References{DB: i.DB}
	gone := map[string]bool{}   // jobs that were erased alone
	var erased []string         // streams of jobs, checkers and accounts that were erased
	closed := map[string]bool{} // streams whose texts do not open
	var firstClosed string
	var out Result
	out.Findings = []audit.Finding{}
	bound, err := i.Log.Bound(ctx)
	if err != nil {
		return Result{}, err
	}
	var pace pace
	_, unlike, err := i.AgainstTree(ctx, against, func(e eventstore.RawEvent) error {
		if err := pace.rest(ctx, i.Gently); err != nil {
			return err
		}
		r, err := e.Decode()
		if err == nil && bound.Disowns(e) {
			r.Event, r.Disowned = nil, true
		}
		if err != nil {
			r = e.Recorded()
		} else {
			err = e.Unreadable() // of a type that this binary does not know
		}
		if err != nil {
			out.find(13, e.Stream, "%v", err)
		}
		log.See(r)
		if !closed[e.Stream] && eventstore.TextsClosed(e) {
			closed[e.Stream] = true
			firstClosed = cmp.Or(firstClosed, e.Stream)
		}
		switch r.Event.(type) {
		case *job.Erased:
			gone[r.StreamID()] = true
			erased = append(erased, r.Stream)
		case *checker.Erased, *account.Erased:
			erased = append(erased, r.Stream)
		}
		if log.Events%toldEvery == 1 {
			tell("reading the log", log.Events)
		}
		return references.See(ctx, r)
	})
	if err != nil {
		return Result{}, err
	}
	out.tellClosed(firstClosed, len(closed)-1)
	out.Findings = append(out.Findings, unlike...)
	now, err := i.Now(ctx)
	if err != nil {
		return Result{}, err
	}
	out.Events, out.Jobs = log.Events, log.Jobs
	out.Findings = append(out.Findings, log.Findings(now)...)
	tell("looking for evidence", out.Events)
	files, err := blob.Open(ctx, i.EvidenceURL)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = files.Close() }() // it is only read
	for _, look := range []func() error{
		func() error { return i.auditEvidence(ctx, files, &out) },
		func() error { return i.auditReferences(ctx, &references, log, gone, &out) },
		func() error { return i.auditLetGo(ctx, files, &references, &out) },
		func() error { return i.auditErasures(ctx, erased, &out) },
	} {
		if err := look(); err != nil {
			return Result{}, err
		}
	}

	tell("comparing the rows of the read models", out.Events)
	feed := &slowLog{Feed: eventstore.NewFeed(i.Log, logger), gently: i.Gently} // not run: it then reads pages
	supervisor := consumer.New(i.Lent, feed, logger, projections.All()...)
	differences, err := supervisor.VerifyAll(ctx, models)
	if err != nil {
		return Result{}, err
	}
	aside, err := SetAside(ctx, i.DB, models)
	if err != nil {
		return Result{}, err
	}
	for n, name := range models {
		out.Findings = append(out.Findings, RowFindings(name, differences[n])...)
	}
	out.Findings = append(out.Findings, aside...)
	return out, nil
}

// SetAside lists the streams that read models have set aside.
func SetAside(ctx context.Context, db *sqlx.DB, models []string) (found []audit.Finding, err error) {
	all, err := consumer.List(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if !s.Serving || !slices.Contains(models, s.Name) {
			continue
		}
		for _, a := range s.SetAside {
			found = append(found, audit.Finding{Invariant: 9, Stream: a.Stream, Problem: fmt.Sprintf(
				"the read model %s has set the stream aside, from its %s at %s on (%s): %s", s.Name, a.Type, a.Position, a.Category,
				logging.OneLine(a.Detail))})
		}
	}
	return found, nil
}

// auditEvidence looks for the file of every piece of evidence. It goes on where the last check
// was interrupted.
func (i Installation) auditEvidence(ctx context.Context, files blob.Bucket, out *Result) error {
	lost, err := evidence.Missing(ctx, i.Lent, files, i.Notes, i.EvidenceURL)
	for _, f := range lost {
		out.find(20, domain.JobStream(f.JobID), "the file of evidence %s is lost", f.Key)
	}
	return err
}

// auditReferences reports evidence that events refer to and that has no row, except for
// accounts and jobs that were erased.
func (i Installation) auditReferences(
	ctx context.Context, references *evidence.References, log *audit.Audit, gone map[string]bool, out *Result,
) error {
	lost, err := references.Lost(ctx)
	if err != nil || len(lost) == 0 {
		return err
	}
	erased, err := i.Vault.Shredded(ctx)
	if err != nil {
		return err
	}
	for _, l := range lost {
		if !erased[log.AccountOf(l.JobID)] && !gone[l.JobID] {
			out.find(20, domain.JobStream(l.JobID), "an event refers to evidence %s, which has no row", l.ID)
		}
	}
	return nil
}

// auditErasures reports erasures that were cut off: the log says "erased", and the key of
// the texts is still there.
func (i Installation) auditErasures(ctx context.Context, erased []string, out *Result) error {
	left, err := i.Vault.SubjectsWithKeys(ctx, erased)
	for _, stream := range left {
		kind, id, _ := strings.Cut(stream, "-")
		again := cmp.Or(map[string]string{"account": "account erase"}[kind], "erase --"+kind)
		out.find(13, stream, "it was erased, and the key of its texts is still there: run humanqa %s %s again", again, id)
	}
	return err
}

// auditLetGo compares evidence that is no longer kept with the log: rows without an
// event, events without a row, and files that are still there.
func (i Installation) auditLetGo(ctx context.Context, files blob.Bucket, references *evidence.References, out *Result) error {
	unlike, err := references.LetGo(ctx, files)
	for _, u := range unlike {
		out.find(20, domain.JobStream(u.JobID), "%s", u.Problem)
	}
	return err
}
