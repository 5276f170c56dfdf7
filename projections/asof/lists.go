package asof

import (
	"context"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/cursor"
	"humanqa/internal/pgpool"
	"humanqa/projections/analytics"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
	"humanqa/projections/readmodel"
	"humanqa/projections/sessions"
)

// listed has the facts about a job that decide its place in a list.
type listed struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
}

// behind says that the job follows the cursor in the list.
func (l listed) behind(c cursor.Cursor) bool {
	return c.IsBeginning() || l.CreatedAt.Before(c.At) || l.CreatedAt.Equal(c.At) && l.ID < c.ID
}

// Jobs is jobs.Reads.List, as it was. Only its stream says whether an open job was
// pending or claimed. A list of pending or of claimed jobs reads the stream of each open
// job.
func (q *Reads) Jobs(ctx context.Context, accountID string, f jobs.Filter, at events.Until) (page []jobs.Summary, total int, err error) {
	open := f.Status == job.StatusPending || f.Status == job.StatusClaimed
	w := jobs.Filter{ProjectID: f.ProjectID, Since: f.Since}.Where(accountID)
	from := "\nFROM (SELECT id, created_at FROM readmodel.jobs WHERE account_id = $1" + w.SQL + " AND " +
		at.Began(w, accountID, "id", "created_at") + ") j" + at.JoinThen(w, "j.id") + "\nWHERE past.created"
	switch {
	case open:
		from += "\n  AND past.status IS NULL"
	case f.Status != "":
		from += "\n  AND past.status = " + w.Param(f.Status)
	}
	const order = "\nORDER BY j.created_at DESC, j.id DESC"
	if open {
		all, err := pgpool.List[listed](ctx, q.db, "the jobs that had not ended", "SELECT j.id, j.created_at"+from+order, w.Args...)
		if err != nil {
			return nil, 0, err
		}
		passed := 0
		for _, one := range all {
			j, err := q.summary(ctx, one.ID, at)
			if err != nil {
				return nil, 0, err
			}
			if j.Status != f.Status {
				continue
			}
			total++
			if one.behind(f.After) {
				if passed++; passed > f.Offset && len(page) < f.Limit {
					page = append(page, j)
				}
			}
		}
		return page, total, nil
	}
	of, count := w.Args, "SELECT COUNT(*)"+from
	if !f.After.IsBeginning() {
		from += fmt.Sprintf("\n  AND (j.created_at, j.id) < (%s, %s)", w.Param(f.After.At), w.Param(f.After.ID))
	}
	query := "SELECT j.id, j.created_at" + from + order + fmt.Sprintf("\nLIMIT %s\nOFFSET %s", w.Param(f.Limit), w.Param(f.Offset))
	found, total, err := readmodel.Page[listed](ctx, q.db, "the jobs that there were", count, query, of, w.Args[len(of):]...)
	if err != nil {
		return nil, 0, err
	}
	for _, one := range found {
		j, err := q.summary(ctx, one.ID, at)
		if err != nil {
			return nil, 0, err
		}
		page = append(page, j)
	}
	return page, total, nil
}

func (q *Reads) summary(ctx context.Context, jobID string, at events.Until) (jobs.Summary, error) {
	past, err := q.Job(ctx, jobID, at)
	if err != nil {
		return jobs.Summary{}, err
	}
	j, err := past.Job()
	return j.Summary(), err
}

// Batch gives those of the jobs that existed then; NotFound if none did.
func (q *Reads) Batch(ctx context.Context, of []jobs.Outline, at events.Until) (batch []*jobs.Past, err error) {
	for _, j := range of {
		past, err := q.Job(ctx, j.ID, at)
		if err != nil {
			return nil, err
		}
		if _, err := past.Job(); err == nil {
			batch = append(batch, past)
		}
	}
	if len(batch) == 0 {
		return nil, domain.NotFound("batch")
	}
	return batch, nil
}

// countsThen has the sums of a project's jobs.
type countsThen struct {
	projects.Counts

	Failed int `json:"failed"`
}

// counts adds up the account's jobs by project, or one project's.
func (q *Reads) counts(ctx context.Context, accountID, projectID string, at events.Until) (map[string]countsThen, error) {
	w := &readmodel.Where{Args: []any{accountID, projectID}}
	then, err := q.jobsThen(ctx, w, accountID, at)
	if err != nil {
		return nil, err
	}
	query := `
SELECT j.project_id,
       COUNT(*) AS jobs,
       COUNT(*) FILTER (WHERE past.status = 'completed') AS completed,
       COUNT(*) FILTER (WHERE past.status = 'completed' AND j.overall_status = 'pass') AS passed,
       COUNT(*) FILTER (WHERE past.status = 'completed' AND j.overall_status = 'fail') AS failed
FROM (
    SELECT id, project_id, overall_status
    FROM ` + then + ` AS jobs
    WHERE account_id = $1
      AND project_id <> ''
      AND ($2 = '' OR project_id = $2)
      AND ` + at.Began(w, accountID, "id", "created_at") + `) j` + at.JoinThen(w, "j.id") + `
WHERE past.created
GROUP BY j.project_id`
	byProject := func(c countsThen) string { return c.ProjectID }
	return pgpool.By(ctx, q.db, "the counts of jobs that there were", byProject, query, w.Args...)
}

// jobsThen is a source of the account's jobs. Those with a dispute by now are as they were,
// because a decision may have changed their figures since.
func (q *Reads) jobsThen(ctx context.Context, w *readmodel.Where, accountID string, at events.Until) (string, error) {
	ids, err := q.reads.Jobs.Disputed(ctx, accountID)
	if err != nil {
		return "", err
	}
	rows := []any{}
	for _, id := range ids {
		past, err := q.Job(ctx, id, at)
		if err != nil {
			return "", err
		}
		if row := past.Row(); row != nil {
			rows = append(rows, row)
		}
	}
	disputed, err := analytics.Rows(w, "jobs", rows)
	return "(SELECT * FROM readmodel.jobs WHERE account_id = " + w.Param(accountID) + " AND disputes = '[]' UNION ALL " +
		disputed + ")", err
}

// state folds a project's stream; s.Exists says whether the project existed.
func (q *Reads) state(ctx context.Context, projectID string, at events.Until) (s project.State, err error) {
	err = q.each(ctx, domain.ProjectStream(projectID), at, func(r domain.Recorded) error {
		s = project.Evolve(s, r.Event)
		return nil
	})
	return s, err
}

// Projects is projects.Reads.List, as it was.
func (q *Reads) Projects(
	ctx context.Context, accountID string, f projects.Filter, at events.Until,
) (page []projects.Project, total int, err error) {
	ids, err := q.reads.Projects.IDs(ctx, accountID, f.ID)
	if err != nil {
		return nil, 0, err
	}
	counts, err := q.counts(ctx, accountID, f.ID, at)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		s, err := q.state(ctx, id, at)
		if err != nil {
			return nil, 0, err
		}
		if !s.Exists || f.Archived != nil && *f.Archived != (s.ArchivedAt != nil) {
			continue
		}
		if total++; total <= f.Offset || len(page) == f.Limit {
			continue
		}
		page = append(page, projects.Of(id, s, counts[id].Counts))
	}
	return page, total, nil
}

// Project is projects.Reads.Get, as it was; NotFound before its creation.
func (q *Reads) Project(ctx context.Context, accountID, projectID string, at events.Until) (projects.Project, error) {
	found, _, err := q.Projects(ctx, accountID, projects.Filter{ID: projectID, Limit: 1}, at)
	if err == nil && len(found) == 0 {
		err = domain.NotFound("project")
	}
	if err != nil {
		return projects.Project{}, err
	}
	return found[0], nil
}

// Sessions is sessions.Reads.List, as it was.
func (q *Reads) Sessions(
	ctx context.Context, accountID string, f sessions.Filter, at events.Until,
) (page []sessions.Session, total int, err error) {
	ids, err := q.reads.Sessions.IDs(ctx, accountID, f.ProjectID)
	if err != nil {
		return nil, 0, err
	}
	ledger, err := q.Ledger(ctx, accountID, at)
	if err != nil {
		return nil, 0, err
	}
	for _, id := range ids {
		own, err := q.sessionEvents(ctx, id, at)
		if err != nil {
			return nil, 0, err
		}
		s, err := sessions.Fold(id, own)
		if domain.IsKind(err, domain.KindNotFound) || err == nil && f.Status != "" && s.Status != f.Status {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if total++; total <= f.Offset || len(page) == f.Limit {
			continue
		}
		if s, err = q.slots(ctx, accountID, s, own, ledger, at); err != nil {
			return nil, 0, err
		}
		page = append(page, s)
	}
	return page, total, nil
}

// Session is the session as it was; NotFound before its creation.
func (q *Reads) Session(ctx context.Context, accountID, sessionID string, at events.Until) (sessions.Session, error) {
	own, err := q.sessionEvents(ctx, sessionID, at)
	if err != nil {
		return sessions.Session{}, err
	}
	s, err := sessions.Fold(sessionID, own)
	if err != nil {
		return s, err
	}
	ledger, err := q.Ledger(ctx, accountID, at)
	if err != nil {
		return s, err
	}
	return q.slots(ctx, accountID, s, own, ledger, at)
}

// sessionTypes are the events that the read model folds; a slot's job has many others.
var sessionTypes = sessions.Projector.Handles()

func (q *Reads) sessionEvents(ctx context.Context, sessionID string, at events.Until) (own []domain.Recorded, err error) {
	err = q.each(ctx, domain.SessionStreams+sessionID, at, func(r domain.Recorded) error {
		own = append(own, r)
		return nil
	})
	return own, err
}

// slots folds the session again, with the events of its slots' jobs and their refunds.
func (q *Reads) slots(
	ctx context.Context, accountID string, s sessions.Session, own []domain.Recorded, before uint64, at events.Until,
) (sessions.Session, error) {
	all := slices.Clone(own)
	var ids []string
	for _, slot := range s.Slots {
		ids = append(ids, slot.JobID)
		err := q.each(ctx, domain.JobStream(slot.JobID), at, func(r domain.Recorded) error {
			if slices.Contains(sessionTypes, r.Type) {
				all = append(all, r)
			}
			return nil
		})
		if err != nil {
			return s, err
		}
	}
	slices.SortStableFunc(all, func(a, b domain.Recorded) int { return a.Position.Compare(b.Position) })
	refunds, err := q.reads.Ledger.Refunds(ctx, accountID, ids, before)
	if err != nil {
		return s, err
	}
	for _, l := range refunds { // in any order: they are summed
		all = append(all, domain.Recorded{
			Stream: domain.CreditsStream(accountID),
			Event:  &credits.Refunded{JobID: l.JobID, Amount: l.Change + l.Expired, Expired: l.Expired},
		})
	}
	return sessions.Fold(s.ID, all)
}
