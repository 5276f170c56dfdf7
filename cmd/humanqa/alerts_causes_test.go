package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/datadir"
	"humanqa/internal/mail"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

// mountSmallDisk gives a data directory a disk of its own, with the Postgres in it: its user
// has to reach that. It is memory as far as it is written to.
func mountSmallDisk(t *testing.T, dir string) {
	t.Helper()
	disk := filepath.Dir(dir)
	run := func(name string, args ...string) {
		if said, err := exec.CommandContext(context.Background(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("a small disk (run the test as root on Linux): %s %v: %v: %s", name, args, err, said)
		}
	}
	run("mount", "-t", "tmpfs", "-o", "size=1g,mode=0711", "humanqa-alarms", disk)
	t.Cleanup(func() {
		eventually.Within(t, eventually.Patience, func() error { // the killed service's Postgres may be about to end
			return exec.CommandContext(context.Background(), "umount", disk).Run()
		})
	})
	must.NoError(t, os.Mkdir(dir, 0o711))
}

func (a *alarms) exec(statement string) {
	a.t.Helper()
	_, err := a.db.ExecContext(a.t.Context(), statement)
	must.NoError(a.t, err)
}

// refuse has Postgres refuse a change of a table, with a code of its own.
func (a *alarms) refuse(name, when, table, condition, code string) {
	a.t.Helper()
	a.exec(fmt.Sprintf(`
		CREATE FUNCTION %[1]s() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused' USING ERRCODE = '%[5]s'; END $$;
		CREATE TRIGGER %[1]s BEFORE %[2]s ON %[3]s FOR EACH ROW %[4]s EXECUTE FUNCTION %[1]s()`, name, when, table, condition, code))
}

// allows ends a refusal.
func (a *alarms) allows(name string) func() {
	return func() { a.exec("DROP FUNCTION " + name + " CASCADE") }
}

// table is that of a read model, with its schema.
func (a *alarms) table(name string) (table string) {
	a.t.Helper()
	must.NoError(a.t, a.db.QueryRowContext(a.t.Context(),
		"SELECT table_schema || '.' || table_name FROM information_schema.tables WHERE table_name = $1 AND table_schema LIKE '%_g%'", name).Scan(&table))
	return table
}

func (a *alarms) submitOne() { a.call(http.StatusCreated, "POST", "/v1/jobs", a.key, submission(1)) }

func (a *alarms) growLedger() {
	id, key := a.newAccount(100)
	for range 12 {
		a.cli(nil, "credits", "grant", "--account", id, "--amount", "1")
	}
	a.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
}

// loseKey makes a webhook whose signing secret will not open any more, and two jobs for it.
func (a *alarms) loseKey() {
	id, key := a.newAccount(100)
	project := a.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{"name": "sealed", "webhookUrl": "https://127.0.0.1:8443/"})
	for range 2 {
		job := a.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project.text("projectId")))
		a.sealed = append(a.sealed, job.text("jobId"))
	}
	a.sealedKey = key
	a.exec("DELETE FROM vault.data_keys WHERE account_id = '" + id + "'")
}

// cancelSealed has an event to deliver.
func (a *alarms) cancelSealed() {
	a.call(http.StatusOK, "POST", "/v1/jobs/"+a.sealed[0]+"/cancel", a.sealedKey, nil)
	a.sealed = a.sealed[1:]
}

// writeLetter has a letter to send, with the link that confirms an address.
func (a *alarms) writeLetter() {
	var invited struct{ PersonID string }
	a.cli(&invited, "person", "invite", "--account", a.account, "--role", "owner", "--name", "Olga Owner")
	must.NoError(a.t, mail.NewStore(sqlx.NewDb(a.db, "postgres"), time.Now, mailtest.Links()).Save(a.t.Context(), a.account, invited.PersonID,
		"olga@example.com", mail.Choices{Reports: mail.AllReports}))
}

// fillDisk leaves less than a tenth of the disk, and more than the service needs to go on.
func (a *alarms) fillDisk() {
	filler, err := os.Create(a.filler())
	must.NoError(a.t, err)
	defer func() { must.NoError(a.t, filler.Close()) }()
	piece := make([]byte, 4<<20)
	eventually.True(a.t, "the disk is full", func() bool { // twenty times a second
		_, err := filler.Write(piece)
		must.NoError(a.t, err)
		free, total, err := datadir.Room(a.dir)
		must.NoError(a.t, err)
		return free < total/10
	})
}

func (a *alarms) emptyDisk() { must.NoError(a.t, os.Remove(a.filler())) }

func (a *alarms) filler() string { return filepath.Join(a.dir, "filler") }

// setClockAhead moves the clock of the whole database. pgclock asks for it by its name; a
// statement that was prepared before has the function's number, and the true time.
func (a *alarms) setClockAhead() {
	a.exec(`
		BEGIN;
		ALTER FUNCTION pg_catalog.clock_timestamp() RENAME TO clock_before;
		CREATE FUNCTION pg_catalog.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
			$$ SELECT pg_catalog.clock_before() + interval '3 seconds' $$;
		COMMIT`)
}

func (a *alarms) setClockBack() {
	a.exec(`
		BEGIN;
		DROP FUNCTION pg_catalog.clock_timestamp();
		ALTER FUNCTION pg_catalog.clock_before() RENAME TO clock_timestamp;
		COMMIT`)
}

func (a *alarms) refuseCheckpoints() {
	a.refuse("unsigned", "INSERT", "audit.checkpoints", "", "55P03")
	a.submitOne()
}

// holdDeliveries leaves no delivery that fails for another reason: a last retry would warn
// from the pool's own goroutine, which fillPipe would hold then, before it takes any work.
func (a *alarms) holdDeliveries() {
	a.refuse("held", "UPDATE", "webhooks.deliveries", "", "55P03")
	a.cancelSealed()
}

func (a *alarms) loseEvidence() {
	_, checker := a.newChecker()
	job := a.call(http.StatusCreated, "POST", "/v1/jobs", a.key, submission(1)).text("jobId")
	claim := a.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": job})
	folder := filepath.Join(a.dir, "evidence")
	must.NoError(a.t, os.RemoveAll(folder))
	must.NoError(a.t, os.WriteFile(folder, nil, 0o600))
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n" + filetest.PNG("") + "\r\n--b--\r\n"
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url("/v1/checker/jobs/"+job+"/evidence"), strings.NewReader(form))
	must.NoError(a.t, err)
	req.Header.Set("Authorization", "Bearer "+checker)
	req.Header.Set("X-Claim-Token", claim.text("claimToken"))
	req.Header.Set("Content-Type", "multipart/form-data; boundary=b")
	res, err := a.client.Do(req)
	must.NoError(a.t, err)
	must.NoError(a.t, res.Body.Close())
	if res.StatusCode < http.StatusInternalServerError {
		a.t.Errorf("a picture is kept without a folder: %d", res.StatusCode)
	}
}

// overload sends more than the service works on, and lets wait, while nothing is written.
func (a *alarms) overload() {
	tx, err := a.db.BeginTx(a.t.Context(), nil)
	must.NoError(a.t, err)
	_, err = tx.ExecContext(a.t.Context(), "LOCK TABLE eventlog.events IN SHARE MODE")
	must.NoError(a.t, err)
	var sent sync.WaitGroup
	for range 400 {
		sent.Go(func() {
			// Some wait until the lock is gone, the others are refused.
			if r, err := a.try("POST", "/v1/jobs", a.key, submission(1)); err != nil || r.status != http.StatusCreated && r.status != http.StatusServiceUnavailable {
				a.t.Errorf("a submission: %d %v", r.status, err)
			}
		})
	}
	eventually.Within(a.t, eventually.Patience, func() error {
		if !a.firing()["HumanqaOverload"] {
			return fmt.Errorf("no overload")
		}
		return nil
	})
	must.NoError(a.t, tx.Rollback())
	sent.Wait()
}

// holdReads sends more reads than there are connections for, while a lock holds them up.
func (a *alarms) holdReads() {
	tx, err := a.db.BeginTx(a.t.Context(), nil)
	must.NoError(a.t, err)
	_, err = tx.ExecContext(a.t.Context(), "LOCK TABLE "+a.table("jobs")+" IN ACCESS EXCLUSIVE MODE")
	must.NoError(a.t, err)
	asking, leave := context.WithCancel(a.t.Context())
	var sent sync.WaitGroup
	for range 60 {
		sent.Go(func() {
			for asking.Err() == nil {
				_, _ = a.tryIn(asking, "GET", "/v1/jobs", a.key, nil) // it waits, and may be 503 in the end
			}
		})
	}
	a.readsGoOn = func() {
		leave()
		must.NoError(a.t, tx.Rollback())
		sent.Wait()
	}
}

func (a *alarms) poison() {
	a.refuse("poison", "INSERT", a.table("jobs"), "WHEN (NEW.title = 'poison')", "22P02")
	a.call(http.StatusCreated, "POST", "/v1/jobs", a.key, submission(1, "title", "poison"))
}

func (a *alarms) tamper() {
	a.exec(`
		INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
		SELECT (SELECT max(position) + 1 FROM eventlog.events), 0, created, gen_random_uuid(), is_json, 'credits-' || gen_random_uuid(), type, data, metadata
		FROM eventlog.events WHERE type = 'credits.granted' LIMIT 1`)
	a.submitOne() // the node finds the row when it writes behind it
}

// moveKey changes a row by SQL, and has an operator look: the service would do so within a day.
func (a *alarms) moveKey() {
	id, _ := a.newAccount(1)
	a.exec("UPDATE " + a.table("api_keys") + " SET account_id = 'thief' WHERE account_id = '" + id + "'")
	if out, _, err := a.tryCLI("fsck"); err == nil {
		a.t.Errorf("fsck found nothing:\n%s", out)
	}
}

func (a *alarms) loseTable() {
	a.exec("ALTER TABLE " + a.table("credit_accounts") + " RENAME TO lost")
	a.submitOne()
}

func (a *alarms) loseView() {
	a.exec("ALTER VIEW readmodel.credit_accounts RENAME TO lost")
	eventually.True(a.t, "the errors are many", func() bool { // a rate needs two looks
		r, err := a.try("GET", "/v1/credits", a.key, nil)
		if err != nil || r.status < http.StatusInternalServerError && r.status != http.StatusTooManyRequests { // the key's quota
			a.t.Errorf("credits without a view: %d %s %v", r.status, r.body, err)
		}
		return a.firing()["HumanqaErrors"]
	})
}

// fillPipe lets nothing read the service's log any more, and has the service write to it
// until no request ends. Then the delivery whose secret does not open, which is tried once
// a minute, waits for the log as well.
func (a *alarms) fillPipe() {
	a.readOn = a.instance.LeaveUnread()
	eventually.True(a.t, "the pipe is full", func() bool {
		asking, cancel := context.WithTimeout(a.t.Context(), 2*time.Second)
		defer cancel()
		_, err := a.tryIn(asking, "GET", "/v1/credits", a.key, nil) // an error without its view, with a line in the log
		return err != nil
	})
}
