package service

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/domain"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A database that is made anew behind a log has none of its keys.
func TestKeysOfTextsThatAreLostAreOneFindingHoweverManyStreamsHaveThem(t *testing.T) {
	t.Parallel()
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+pgtest.NewDSN(t))
	cfg.Demo = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must.NoError(t, Serve(ctx, cfg, log, func(s *Service) {
		defer stop()
		for n := range 3 {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.BaseURL+"/v1/jobs", strings.NewReader(fmt.Sprintf(
				`{"url": "https://example.com/%d", "title": "t", "description": "d", "jobType": "Custom"}`, n)))
			must.NoError(t, err)
			req.Header.Set("Authorization", "Bearer "+s.demo.APIKey)
			res, err := http.DefaultClient.Do(req)
			must.NoError(t, err)
			_ = res.Body.Close() // its status says enough
			if res.StatusCode != http.StatusCreated {
				t.Fatalf("a submission: %d", res.StatusCode)
			}
		}
		_, err := s.core.DB.ExecContext(ctx, "DELETE FROM vault.subject_keys")
		must.NoError(t, err)
		again, err := Attach(ctx, s.cfg, log) // it has no keys in memory
		must.NoError(t, err)
		defer func() { must.NoError(t, again.Close(ctx)) }()
		out, err := again.Installation().Check(ctx, log, fsck.NoProgress, nil)
		must.NoError(t, err)
		var told []string
		for _, f := range out.Findings {
			if strings.Contains(f.Problem, domain.ErrKeyLost.Error()) {
				told = append(told, f.String())
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], "further streams: restore table vault.subject_keys") {
			t.Errorf("the check says %v", told)
		}
	}))
}

// Whose key it is decides who reads what. Nobody ran a command.
func TestARowThatWasChangedBySQLIsToldByTheServiceItself(t *testing.T) {
	t.Parallel()
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+pgtest.NewDSN(t))
	cfg.Demo = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must.NoError(t, Serve(ctx, cfg, log, func(s *Service) {
		defer stop()
		checked := func() (notes string) {
			must.NoError(t, s.checks.Start(ctx, uuid.New(), invariantcheck.ByItself))
			eventually.True(t, "the check ends", func() bool {
				all, err := s.checks.List(ctx, 1)
				must.NoError(t, err)
				return all[0].State == "done"
			})
			for _, p := range s.problems(ctx) {
				if p.Note {
					notes += p.Part + ": " + p.Reason
				}
			}
			return notes
		}
		if notes := checked(); notes != "" {
			t.Errorf("nothing was changed: %s", notes)
		}
		var table string
		must.NoError(t, s.core.DB.GetContext(ctx, &table,
			"SELECT table_schema || '.api_keys' FROM information_schema.tables WHERE table_name = 'api_keys' AND table_schema LIKE '%_g%'"))
		_, err := s.core.DB.ExecContext(ctx, "UPDATE "+table+" SET account_id = 'thief'")
		must.NoError(t, err)
		if notes := checked(); !strings.Contains(notes, "invariants: the check of the invariants of") {
			t.Errorf("the notes of a ready service: %q", notes)
		}
	}))
}

func TestACheckFillsNoDisk(t *testing.T) {
	t.Parallel()
	places := map[string]string{"data": t.TempDir()}
	must.NoError(t, roomFor(map[string]int64{"jobs_v1_g1": 1, "ledger_v1_g1": 1}, places))
	if err := roomFor(map[string]int64{"jobs_v1_g1": math.MaxInt64 / 2, "ledger_v1_g1": 1}, places); err == nil {
		t.Error("a check begins that would fill the disk")
	}
}
