package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/longlog"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// statusesFile declares the tests with their status, and the number of their events. A count
// shows an event that was applied twice or never. Each version has a column that no other has.
const statusesFile = `
name: statuses
version: %[1]d
events: [job.created, job.claimed, job.released, job.item_checked, job.completed, job.cancelled]
tables: |
  CREATE TABLE statuses (
      job_id      text PRIMARY KEY,
      account_id  text NOT NULL,
      status      text NOT NULL,
      events      bigint NOT NULL,
      version_%[1]d integer NOT NULL
  );
apply: |
  INSERT INTO statuses AS s
  SELECT job_id, max(account_id), (array_agg(CASE
             WHEN type IN ('job.created', 'job.released') THEN 'pending'
             WHEN type IN ('job.claimed', 'job.item_checked') THEN 'claimed'
             ELSE split_part(type, '.', 2) END ORDER BY position DESC))[1],
         count(*), 1
  FROM batch
  GROUP BY job_id
  ON CONFLICT (job_id) DO UPDATE
  SET status = EXCLUDED.status, events = s.events + EXCLUDED.events;
`

// builtInStatusesSQL has the same rows from the built-in read model, counted in the log.
const builtInStatusesSQL = `
SELECT j.id AS job_id, j.account_id, j.status, e.events
FROM readmodel.jobs j
JOIN (
    SELECT substr(stream, length('job-') + 1) AS id, count(*) AS events
    FROM eventlog.events
    WHERE type IN ('job.created', 'job.claimed', 'job.released', 'job.item_checked', 'job.completed', 'job.cancelled')
    GROUP BY stream) e USING (id)`

// The service is killed while declared projections follow a load, and while one of them is
// built for the first time, built anew, or replaced by a higher version. With -torture there are
// more kills, and the projection is dropped and declared again, too. In the end each has the
// rows of the log, and the same as the built-in read model.
func TestDeclaredProjectionsOutliveKills(t *testing.T) {
	t.Parallel()
	seed, kills := tortureOf(t, 3)
	dice := rand.New(rand.NewPCG(seed, 0))
	folder := t.TempDir()
	example, err := os.ReadFile("../../docs/projections/pass_rates.yaml")
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(folder, "pass_rates.yaml"), example, 0o600))
	p := newProgram(t, "HUMANQA_PROJECTIONS="+folder)
	s := p.spawn()
	s.stop() // it would give a charge back whose job does not follow within seconds
	p.finishJobs(400)
	s = p.spawn()
	db := pgtest.NewDB(t, p.dsn())
	load := newLoad(p, dice, plenty[0])
	load.submit(0, load.accounts[0])
	load.takeFromQueue(load.checkers[0])

	version := 0
	declare := func() {
		version++
		file := filepath.Join(t.TempDir(), "statuses.yaml")
		must.NoError(t, os.WriteFile(file, fmt.Appendf(nil, statusesFile, version), 0o600))
		p.cli(nil, "projections", "add", file)
	}
	name := generation.Declared("statuses")
	newest := func() (number int) {
		must.NoError(t, db.GetContext(t.Context(), &number, "SELECT COALESCE(max(generation), 0) FROM projection_checkpoints WHERE name = $1", name))
		return number
	}
	at := func() (n int64) {
		must.NoError(t, db.GetContext(t.Context(), &n, "SELECT COALESCE(max(commit_position), -1) FROM projection_checkpoints WHERE name = 'declared_pass_rates'"))
		return n
	}
	for round := range kills {
		stood := at()
		eventually.True(t, "the declared projections follow", func() bool { return at() > stood })
		before := newest()
		switch round % 3 {
		case 0:
			if round > 0 {
				p.cli(nil, "projections", "drop", "statuses")
				before = 0
			}
			declare()
		case 1:
			p.cli(nil, "projections", "rebuild", name, "--detach")
		case 2:
			declare()
		}
		if dice.IntN(3) > 0 { // else it may be killed before it begins
			eventually.True(t, "the build begins", func() bool { return newest() > before })
		}
		load.goesOn(dice.Uint64N(60))
		s.kill()
		t.Logf("round %d: killed at %v", round+1, declaredOf(generations(t, db)))
		// The dead one's leases end fifteen seconds later.
		p.sql(`UPDATE projection_checkpoints SET lease_until = now() - interval '1 second' WHERE owner IS NOT NULL`)
		s = p.spawn()
	}
	load.goesOn(20)
	load.stop()

	var names []string
	eventually.Within(t, eventually.Patience, func() error {
		var list listing
		p.cli(&list, "projections", "list")
		names = nil
		for _, l := range list.Projections {
			switch {
			case l.Status == string(generation.Retired):
				continue
			case !l.Serving || l.Status != string(generation.Live) || l.Position != list.Head || l.Failure != nil || l.Obstacle != "":
				return fmt.Errorf("it does not stand at the log's end %s: %+v", list.Head, l)
			case l.Name == name && l.Version != version:
				return fmt.Errorf("version %d serves, and %d was added", l.Version, version)
			case generation.IsDeclared(l.Name):
				names = append(names, l.Name)
			}
		}
		if !slices.Equal(names, []string{"declared_pass_rates", name}) {
			return fmt.Errorf("there are %v", names)
		}
		return nil
	})
	declared := "SELECT job_id, account_id, status, events FROM declared.statuses"
	var rows, differ int
	must.NoError(t, db.GetContext(t.Context(), &rows, "SELECT count(*) FROM declared.statuses"))
	must.NoError(t, db.GetContext(t.Context(), &differ, fmt.Sprintf(
		"SELECT count(*) FROM ((%[1]s EXCEPT %[2]s) UNION ALL (%[2]s EXCEPT %[1]s)) d", declared, builtInStatusesSQL)))
	if rows < 400+len(load.jobs) || differ > 0 {
		t.Errorf("of %d rows, %d differ; %d jobs were acknowledged", rows, differ, len(load.jobs))
	}
	for _, name := range names {
		p.cli(nil, "projections", "rebuild", name, "--dry-run") // fails where a row is not what the log says
	}
	load.check()
	// Every debit has its job, or is refunded within a minute.
	eventually.Within(t, eventually.Patience, func() error {
		stdout, stderr, err := p.tryCLI("fsck")
		if err != nil {
			err = errors.Join(err, errors.New(stdout+stderr))
		}
		return err
	})
	s.stop()
}

// finishJobs writes finished jobs straight into the log, as the commands would have.
func (p *program) finishJobs(n int) {
	p.t.Helper()
	p.inCore(func(core *service.Core) {
		ledger := longlog.NewLedger(core.Log, uuid.NewString(), 0)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = uuid.NewString()
		}
		must.NoError(p.t, ledger.Charge(p.t.Context(), ids))
		for i, id := range ids {
			life := longlog.Life{AccountID: ledger.Account, Ended: time.Now().Add(-time.Duration(i) * time.Hour)}
			must.NoError(p.t, life.Write(p.t.Context(), core.Log, id))
		}
	})
}

// declaredOf describes the generations of declared projections.
func declaredOf(all map[string]built) (list []string) {
	for schema, g := range all {
		if generation.IsDeclared(schema) {
			list = append(list, fmt.Sprintf("%s %s %d", strings.TrimPrefix(schema, "declared_"), g.State, g.At))
		}
	}
	slices.Sort(list)
	return list
}
