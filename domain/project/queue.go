package project

import (
	"slices"
	"time"

	"humanqa/domain"
)

// Fix is a prepared fix in the queue. Without JobIDs it waits. With them a test
// has taken it along: it waits again once every one of these jobs is Lost, and
// is verified once one of them is Reported.
type Fix struct {
	Prepared
	BatchID    string
	PreparedAt time.Time
	JobIDs     []string
	AttachedAt time.Time
}

// Outcome is the outcome of a job that took fixes. The project's stream does not have it,
// so the caller reads the jobs.
type Outcome int

// The outcomes.
const (
	Alive    Outcome = iota // pending or claimed, or still on its way into the log
	Reported                // completed
	Lost                    // ended without a report, or never came
)

// Waiting gives the fixes that the next test may take, the newest first: those that wait,
// and those that the jobs in ours already have.
func (s State) Waiting(ours []string, outcome func(Fix) Outcome) []Fix {
	var waiting []Fix
	for _, f := range slices.Backward(s.Queue) {
		if len(f.JobIDs) == 0 || slices.Equal(f.JobIDs, ours) || outcome(f) == Lost {
			waiting = append(waiting, f)
		}
	}
	return waiting
}

// Verified gives the ids of the fixes that a test has reported on.
func (s State) Verified(outcome func(Fix) Outcome) []string {
	var ids []string
	for _, f := range s.Queue {
		if len(f.JobIDs) > 0 && outcome(f) == Reported {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// OutcomeOf adds the outcomes of a fix's jobs up.
func OutcomeOf(jobs []string, one func(jobID string) Outcome) Outcome {
	whole := Lost
	for _, id := range jobs {
		switch one(id) {
		case Reported:
			return Reported
		case Alive:
			whole = Alive
		case Lost:
		}
	}
	return whole
}

// DecidePrepare queues fixes for the next test (specification, "POST
// /v1/hosted/prepare-next"). A batch id that is queued already is a repeat.
func DecidePrepare(s State, batch RegressionsPrepared) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case len(batch.Items) == 0:
		return nil, domain.Invalid(
			domain.Detail{Path: "fixedBugIds", Message: "must name something unless fixedDescriptions does"},
			domain.Detail{Path: "fixedDescriptions", Message: "must name something unless fixedBugIds does"},
		)
	case slices.ContainsFunc(s.Queue, func(f Fix) bool { return f.BatchID == batch.BatchID }):
		return nil, nil
	case s.ArchivedAt != nil:
		return nil, s.TakesTests()
	}
	return []domain.Event{&batch}, nil
}

// DeploysOf gives the remembered deploys that came under one of the keys, the
// newest first.
func (s State) DeploysOf(keys []string) []DeployReceived {
	var found []DeployReceived
	for _, d := range slices.Backward(s.Deploys) {
		if slices.ContainsFunc(keys, func(k string) bool { return slices.Contains(d.Keys, k) }) {
			found = append(found, d)
		}
	}
	return found
}

func (s State) received(jobID string) bool {
	return slices.ContainsFunc(s.Deploys, func(d DeployReceived) bool { return d.JobID == jobID })
}

// notYetWith are the ids of fixes that the jobs have not taken yet.
func (s State) notYetWith(jobs, ids []string) []string {
	out := []string{}
	for _, f := range s.Queue {
		if slices.Contains(ids, f.ID) && !slices.Equal(f.JobIDs, jobs) {
			out = append(out, f.ID)
		}
	}
	return out
}

// queued adds a batch. A key that is queued already is replaced, also where a
// test has taken it along: the newer fix is the one to verify.
func queued(queue []Fix, e *RegressionsPrepared) []Fix {
	var fresh []Fix
	for _, item := range e.Items {
		fresh = append(withoutKey(fresh, item.Key), Fix{Prepared: item, BatchID: e.BatchID, PreparedAt: e.At})
		queue = withoutKey(queue, item.Key)
	}
	return newest(KeptPrepared, queue, fresh...)
}

func withoutKey(queue []Fix, key string) []Fix {
	return slices.DeleteFunc(slices.Clone(queue), func(f Fix) bool { return f.Key == key })
}

func attached(queue []Fix, e *RegressionsAttached) []Fix {
	var after []Fix
	for _, f := range queue {
		if slices.Contains(e.Forgotten, f.ID) {
			continue
		}
		if slices.Contains(e.Items, f.ID) {
			f.JobIDs, f.AttachedAt = e.JobIDs, e.At
		}
		after = append(after, f)
	}
	return after
}
