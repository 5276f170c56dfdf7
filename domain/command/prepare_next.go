package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

// PrepareNext queues fixes for the project's next test (specification, "POST
// /v1/hosted/prepare-next"). Two that mean the same item are one.
func (s *Service) PrepareNext(ctx context.Context, cause Cause, projectID string, fixes []PreparedFix) (PreparedFixes, error) {
	batch := project.RegressionsPrepared{BatchID: domain.DeriveID(cause.CommandID, "prepared").String()}
	items := make([]NewItem, len(fixes))
	for n, f := range fixes {
		items[n] = NewItem{Key: f.Key, Description: f.Description}
	}
	items, err := s.keepKeys(ctx, cause.AccountID, projectID, items)
	if err != nil {
		return PreparedFixes{}, err
	}
	out := PreparedFixes{Descriptions: []string{}}
	for n, f := range fixes {
		f.Key = cmp.Or(items[n].Key, job.KeyFor(f.Description))
		f.Severity = cmp.Or(f.Severity, job.Major)
		if slices.ContainsFunc(batch.Items, func(p PreparedFix) bool { return p.Key == f.Key }) {
			continue
		}
		f.ID = domain.DeriveID(cause.CommandID, "prepared-"+strconv.Itoa(n)).String()
		out.Descriptions = append(out.Descriptions, f.Description)
		batch.Items = append(batch.Items, f)
	}
	_, out.Position, err = s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		batch.At = now
		return project.DecidePrepare(st, batch)
	})
	return out, err
}
