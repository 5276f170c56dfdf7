package command_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/internal/testing/commandtest"
)

// What the log adds up to, and what the read models know of it.

// catchUp folds what the log has beyond what was seen, and gives it.
func (w *world) catchUp(t *rapid.T) []domain.Recorded {
	all := w.log.All()
	news := all[w.seen:]
	w.seen = len(all)
	var born []string
	for _, r := range news {
		w.audit.See(r)
		// Settings that somebody else changed meanwhile are set again.
		was, twice := w.eventIDs[r.ID.String()]
		if twice && !strings.HasPrefix(r.Stream, domain.ProjectStreams) {
			t.Fatalf("the event %s of %s has the id of one of %s", r.Type, r.Stream, was)
		}
		w.eventIDs[r.ID.String()] = r.Stream
		if id := w.fold(t, r); id != "" {
			born = append(born, id)
		}
		w.react(r)
	}
	// A batch's jobs are written at once, in any order.
	slices.Sort(born)
	w.jobOrder = append(w.jobOrder, born...)
	return news
}

func (w *world) fold(t *rapid.T, r domain.Recorded) (born string) {
	category, id, _ := strings.Cut(r.Stream, "-")
	var owner string
	switch category + "-" {
	case domain.AccountStreams:
		owner = id
		if e, ok := r.Event.(*account.ClockAdvanced); ok {
			w.ahead[id] = time.Duration(e.OffsetSeconds) * time.Second
		}
	case domain.CreditsStreams:
		owner = id
		w.foldLedger(t, r, id)
	case domain.JobStreams:
		if e, ok := r.Event.(*job.Created); ok {
			born, w.created[id] = id, e
		}
		if _, ok := r.Event.(*job.Completed); ok {
			w.completed = append(w.completed, id)
		}
		w.jobs[id] = job.Evolve(w.jobs[id], r.Event)
		owner = w.jobs[id].AccountID
		w.foldClaim(t, r, owner)
	case domain.ProjectStreams:
		w.sites[id] = project.Evolve(w.sites[id], r.Event)
		owner = w.sites[id].AccountID
		w.foldProject(r, id)
	case domain.SessionStreams:
		if _, ok := r.Event.(*session.Created); ok {
			w.lobbies = append(w.lobbies, id)
		}
		w.sessions[id] = session.Evolve(w.sessions[id], r.Event)
		owner = w.sessions[id].AccountID
	case domain.LoopStreams:
		w.foldLoop(t, r, id)
		owner = w.loops[id].Session.AccountID
	default:
		return ""
	}
	// Invariant 16 begins here: checkers' commands name no account.
	if by := r.Meta.AccountID; by != owner && by != "" {
		t.Fatalf("%s in %s is of account %s, the stream is %s's", r.Type, r.Stream, by, owner)
	}
	return born
}

func (w *world) foldClaim(t *rapid.T, r domain.Recorded, owner string) {
	e, ok := r.Event.(*job.Claimed)
	if !ok || job.IsRobot(e.CheckerID) {
		return
	}
	if w.belongsTo[e.CheckerID] == owner {
		t.Fatalf("%s is claimed by a checker of its own account", r.Stream)
	}
	held := 0
	for _, j := range w.jobs {
		if j.Status == job.StatusClaimed && j.CheckerID == e.CheckerID {
			held++
		}
	}
	if held > limitOfClaims {
		t.Fatalf("%s holds %d claims", e.CheckerID, held)
	}
}

// foldLedger expects of a close that nothing is known less from there on than
// from the beginning, but for debits that are settled.
func (w *world) foldLedger(t *rapid.T, r domain.Recorded, id string) {
	w.ledgers[id] = credits.Evolve(w.ledgers[id], r.Event)
	e, ok := r.Event.(*credits.Closed)
	if !ok {
		w.unclosed[id] = credits.Evolve(w.unclosed[id], r.Event)
		return
	}
	begun := credits.Evolve(credits.State{}, e)
	if full := w.ledgers[id]; full.Book() != begun.Book() ||
		!reflect.DeepEqual(full.Lots(time.Time{}), begun.Lots(time.Time{})) {
		t.Fatalf("close %d of %s leads to %+v, the whole stream to %+v", e.Number, id, begun.Book(), full.Book())
	}
	w.closes++
}

func (w *world) foldProject(r domain.Recorded, id string) {
	switch e := r.Event.(type) {
	case *project.Created:
		if !slices.Contains(w.projects[e.AccountID], id) {
			w.projects[e.AccountID] = append(w.projects[e.AccountID], id)
		}
	case *project.RegressionsPrepared:
		kept := slices.DeleteFunc(w.fixes[id], func(p project.Prepared) bool {
			return slices.ContainsFunc(e.Items, func(q project.Prepared) bool { return p.Key == q.Key })
		})
		w.fixes[id] = append(kept, e.Items...)
	case *project.RegressionsAttached:
		for _, fix := range e.Forgotten {
			w.forgotten[fix] = true
		}
	}
}

// foldLoop expects that nothing happens to a loop session that has ended.
func (w *world) foldLoop(t *rapid.T, r domain.Recorded, id string) {
	before, known := w.loops[id]
	if !known {
		w.loopOrder = append(w.loopOrder, id)
	}
	var of string
	switch e := r.Event.(type) {
	case *loop.Iterated:
		of = e.SessionID
	case *loop.OutcomeRecorded:
		of = e.SessionID
	case *loop.Ended:
		of = e.SessionID
	}
	if over, ended := before.Ends[of]; ended {
		t.Fatalf("%s happens to loop session %s, which is %s", r.Type, of, over)
	}
	w.loops[id] = loop.Evolve(before, r.Event)
}

// moodyAI thinks at once, or later, or not at all.
type moodyAI struct {
	commandtest.AI
	w             *world
	instant, down bool
}

func (a *moodyAI) Instant() bool { return a.instant }

func (a *moodyAI) Checklist(ctx context.Context, b command.ChecklistBrief) ([]command.NewItem, string, error) {
	if a.down {
		return nil, "", errNoModel
	}
	return a.AI.Checklist(ctx, b)
}

func (a *moodyAI) Analyse(ctx context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	if a.down {
		return job.AIReport{}, errNoModel
	}
	return a.AI.Analyse(ctx, b)
}

func (a *moodyAI) Review(ctx context.Context, url string) (command.Review, error) {
	if a.down {
		return command.Review{}, errNoModel
	}
	return a.AI.Review(ctx, url)
}

// The nominations are what the log added up to before the step.

func (a *moodyAI) ProjectForHost(_ context.Context, accountID, host string) (string, bool, error) {
	for _, id := range slices.Backward(a.w.projects[accountID]) {
		if url := a.w.sites[id].DefaultURL; url != nil && *url == "https://"+host {
			return id, true, nil
		}
	}
	return "", false, nil
}

func (a *moodyAI) OpenFailures(_ context.Context, accountID, projectID string, limit int) ([]command.Regression, error) {
	var open []command.Regression
	judged := map[string]bool{}
	for _, id := range slices.Backward(a.w.completed) {
		j := a.w.jobs[id]
		if j.AccountID != accountID || j.ProjectID != projectID {
			continue
		}
		for _, i := range j.Report.Items {
			if i.Status == job.ItemFail && !judged[i.Key] {
				item := job.Item{Key: i.Key, Description: i.Description, Severity: i.Severity}
				open = append(open, command.Regression{Item: item, FailedAt: j.CompletedAt})
			}
			judged[i.Key] = true
		}
	}
	return open[:min(limit, len(open))], nil
}

func (a *moodyAI) Ended(_ context.Context, _ string, jobIDs []string) ([]string, error) {
	return slices.DeleteFunc(slices.Clone(jobIDs), func(id string) bool { return !a.w.jobs[id].Status.Ended() }), nil
}

func (a *moodyAI) Tested(_ context.Context, _, projectID string) (bool, error) {
	return slices.ContainsFunc(a.w.jobOrder, func(id string) bool { return a.w.jobs[id].ProjectID == projectID }), nil
}

// KnownKeys implements command.Reads.
func (*moodyAI) KnownKeys(context.Context, string, string, []string) (map[string]string, error) {
	return nil, nil
}

// SamePlace implements command.Reads.
func (*moodyAI) SamePlace(context.Context, string, job.CommitStatus) ([]string, error) {
	return nil, nil
}

// Waiting implements command.Reads.
func (a *moodyAI) Waiting(_ context.Context, accountID, projectID string, limit int) (ids []string, err error) {
	for _, id := range a.w.jobOrder {
		j := a.w.jobs[id]
		if j.AccountID == accountID && j.ProjectID == projectID && j.Status == job.StatusPending && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
