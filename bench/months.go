package main

import (
	"context"
	"time"

	app "humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/thirdmonth"
)

// months is part (n): the pages of an owner of 40 projects, in the third month's fixture with
// twenty times its tests.
func months(ctx context.Context, b *bench) (section, error) {
	b.readyWithin = time.Until(b.deadline) // the read models follow the whole log first
	s, err := b.openService(ctx)
	if err != nil {
		return section{}, err
	}
	owner, err := s.openPeople(ctx, "months", finders, 0)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	month, err := s.writeMonths(ctx, owner.id)
	if err != nil {
		return section{}, s.ifDead(err)
	}
	project := month.ProjectIDs[0]
	return s.timePages(ctx, owner, "months: the pages of an owner of 40 projects", []timedPage{
		{"overview", "/dashboard"},
		{"projects", "/dashboard/projects"},
		{"failing projects", "/dashboard/projects?show=failing"},
		{"one project", "/dashboard/projects/" + project},
		{"tests of a project", "/dashboard/jobs?project=" + project},
		{"failed tests", "/dashboard/jobs?verdict=fail"},
		{"a report", "/dashboard/jobs/" + month.Report},
		{"new test", "/dashboard/jobs/new?project=" + project},
		{"batch", "/dashboard/batches/" + month.BatchID},
		{"credits", "/dashboard/credits"},
		{"statement", "/dashboard/credits/statement?month=" + time.Now().UTC().AddDate(0, -1, 0).Format("2006-01")},
		{"activity", "/dashboard/activity"},
		{"who saw secrets", "/dashboard/secrets"},
	})
}

// writeMonths writes the fixture straight into the log, while the service is stopped, and
// returns when the read models have it.
func (s *service) writeMonths(ctx context.Context, accountID string) (month thirdmonth.Month, err error) {
	err = s.whileStopped(ctx, func(core *app.Core) error {
		month, err = thirdmonth.Write(ctx, core.Log, accountID, foundTests/thirdmonth.Tests, time.Now())
		return err
	})
	if err != nil {
		return month, err
	}
	return month, s.run(ctx, s.url[len("http://"):])
}
