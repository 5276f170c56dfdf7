package projections_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	retentionmodel "humanqa/projections/retention"
)

func days(n int) *int { return &n }

func TestSettingsAndHoldsAreThoseThatCountNow(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, retentionmodel.Projector)
	w.Run(w.Sup)
	reads := retentionmodel.NewReads(w.DB)
	placed := retention.HoldPlaced{Reason: "a lawsuit", At: modeltest.Noon}
	w.Log.Record(domain.AccountStream("acme"), &account.RetentionChanged{Keep: retention.Keep{EvidenceDays: days(90)}},
		&account.HoldPlaced{HoldPlaced: placed}, &account.ClockAdvanced{AdvanceID: "a", OffsetSeconds: 60},
		&account.ClockAdvanced{AdvanceID: "b", OffsetSeconds: 120})
	w.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acme", Name: "Shop"},
		&project.SettingsChanged{Name: "Shop", Keep: retention.Keep{RecordingsDays: days(7)}},
		&project.HoldPlaced{HoldPlaced: placed}, &project.HoldReleased{})
	w.Log.Record(domain.ProjectStream("p2"), &project.Created{AccountID: "acme", Name: "Blog"},
		&project.SettingsChanged{Name: "Blog", Keep: retention.Keep{RecordingsDays: days(7)}},
		&project.SettingsChanged{Name: "Blog"})
	w.Log.Record(domain.ProjectStream("p3"), &project.Created{AccountID: "acme", Name: "None"}, &project.SettingsChanged{Name: "Still none"})
	w.Log.Record(domain.JobStream("j1"), &job.HoldPlaced{HoldPlaced: placed})
	w.Reach(w.Sup)

	settings, err := reads.Settings(w.Ctx(), "acme")
	must.NoError(t, err)
	modeltest.Same(t, settings, []retentionmodel.Setting{{EvidenceDays: days(90)}, {ProjectID: "p1", RecordingsDays: days(7)}})
	var rows int
	must.NoError(t, w.DB.GetContext(w.Ctx(), &rows, `SELECT count(*) FROM readmodel.retention_settings`))
	if rows != 3 { // a project that never had a setting has no row
		t.Errorf("there are %d rows of settings", rows)
	}
	var ahead int64
	must.NoError(t, w.DB.GetContext(w.Ctx(), &ahead, `SELECT ahead_seconds FROM readmodel.retention_clocks WHERE account_id = 'acme'`))
	if ahead != 120 {
		t.Errorf("the clock is %d s ahead", ahead)
	}
	var held []string
	must.NoError(t, w.DB.SelectContext(w.Ctx(), &held, `SELECT kind || ' ' || id FROM readmodel.retention_holds ORDER BY 1`))
	modeltest.Same(t, held, []string{"account acme", "job j1"})
	if other, err := reads.Settings(w.Ctx(), "zeta"); err != nil || len(other) != 0 {
		t.Errorf("another account has %v, %v", other, err)
	}
}
