package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/job"
)

// TestPreview has the checklist and the cost of a hosted test that is not submitted.
type TestPreview struct {
	ProjectID   string // empty: the test opens a project of its own
	ProjectName string
	Type        job.Type
	TypeEcho    string
	// Items begin with the regressions, which have an origin. A review has none.
	Items            []job.Item
	GeneratedBy      string // author of the items that are not the client's
	Price            domain.Credits
	CreditsAvailable domain.Credits
	EstimatedMinutes int
	SLAMinutes       int
}

// PreviewTest gives the result that TestHosted would have for the same test, and writes
// nothing. A model may write another list the next time; a test of exactly this list must
// name its items.
func (s *Service) PreviewTest(ctx context.Context, cause Cause, in HostedTest) (TestPreview, error) {
	to, err := s.findProject(ctx, cause, in)
	if err != nil {
		return TestPreview{}, err
	}
	outcomes, err := s.readOutcomes(ctx, cause, to.state, nil)
	if err != nil {
		return TestPreview{}, err
	}
	found := preparation{projectID: to.projectID}
	var failures []Regression
	if found.jobType, found.typeEcho, failures, err = s.readHistory(ctx, cause, in, to); err != nil {
		return TestPreview{}, err
	}
	if to.state.DefaultSLAMinutes != nil {
		found.slaMinutes = *to.state.DefaultSLAMinutes
	}
	if !found.jobType.Automatic() {
		found.regressions, _ = regressions(failures, to.state.Waiting(nil, outcomes.fix))
	}
	test := found.newJob(in)
	test.Wait = true
	draft, err := s.draftJob(ctx, cause, test)
	if err != nil {
		return TestPreview{}, err
	}
	out := TestPreview{
		Type: draft.Type, TypeEcho: draft.TypeEcho, Items: draft.Items, GeneratedBy: draft.GeneratedBy, Price: draft.Price,
		EstimatedMinutes: estimate(draft.SLAMinutes, draft.Urgent), SLAMinutes: draft.SLAMinutes,
	}
	if to.state.Exists {
		out.ProjectID, out.ProjectName = to.projectID, to.state.Name
	}
	out.CreditsAvailable, err = s.availableCredits(ctx, cause)
	return out, err
}

// PreviewBulk gives the checklists that SubmitBulk would give the same tests, and writes
// nothing. A model may write another list the next time, as with PreviewTest.
func (s *Service) PreviewBulk(ctx context.Context, cause Cause, tests []SubmitJob) ([]job.Created, error) {
	drafts := make([]job.Created, len(tests))
	return drafts, together(len(tests), func(i int) (err error) {
		test := newJob{SubmitJob: tests[i]}
		test.Wait = true
		drafts[i], err = s.draftJob(ctx, cause, test)
		return err
	})
}
