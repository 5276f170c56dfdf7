package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

var prometheusBinary = flag.String("prometheus", "", "have TestAlertsFire run this Prometheus server")

// hurriedRules turns the rules into ones with seconds for minutes, so that a test need not
// wait. promtool plays the rules as they are (scripts/alerts.sh).
var hurriedRules = strings.NewReplacer("> 0.7", "> 0.0002", "> 60", "> 1", "> 10000", "> 10", "[10m]", "[20s]", "[5m]", "[20s]")

var patience = regexp.MustCompile(`(?m)^\s+for: .*\n`)

// Prometheus watches a running service by the alerts' rules. Each trouble is caused in the
// service, its database or its folder, and its alert fires, which did not before. `make alarms`
// runs it.
func TestAlertsFire(t *testing.T) {
	if *prometheusBinary == "" {
		t.Skip("it needs a Prometheus server: -args -prometheus FILE")
	}
	admin := freePort(t)
	p := newEmbedded(t, "HUMANQA_ADMIN_ADDR="+admin, "HUMANQA_WEBHOOK_ALLOW=127.0.0.1/32")
	a := &alarms{program: p, instance: p.start(), address: watch(t, admin)}
	db, err := sql.Open("postgres", p.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }() // nothing is pending on it
	a.db = db
	a.account, a.key = p.newAccount(100_000)
	for _, cause := range []struct {
		name   string
		does   func()
		alerts []string
	}{
		{"a job waits", a.submitOne, []string{"HumanqaJobsNearSLA"}},
		{"a ledger has grants, and no close", a.growLedger, []string{"HumanqaLedgerNotClosed"}},
		{"no delivery can be claimed", a.holdDeliveries, []string{"HumanqaDeliveriesLate"}},
		{"the folder of the evidence is gone", a.loseEvidence, []string{"HumanqaEvidenceFails"}},
		{"the log stands still under load", a.overload, []string{"HumanqaOverload"}},
		{"a row is refused", a.poison, []string{"HumanqaStreamsSetAside"}},
		{"a million credits come by SQL", a.tamper, []string{"HumanqaAuditFindings"}},
		{"a table is gone", a.loseTable, []string{"HumanqaReadModelStopped", "HumanqaReadModelBehind", "HumanqaReadModelStalled"}},
		{"a view is gone", a.loseView, []string{"HumanqaErrors"}},
		{"the process is killed", a.instance.kill, []string{"HumanqaDown"}},
	} {
		for _, alert := range cause.alerts {
			if a.firing()[alert] {
				t.Errorf("%s fires before %s", alert, cause.name)
			}
		}
		began := time.Now()
		cause.does()
		for _, alert := range cause.alerts {
			eventually.Within(t, time.Minute, func() error {
				if fires := a.firing(); !fires[alert] {
					return fmt.Errorf("%s: of %s only %v fire", cause.name, alert, fires)
				}
				return nil
			})
			t.Logf("%s: %s fires after %s", cause.name, alert, time.Since(began).Round(time.Second))
		}
	}
}

// watch starts Prometheus, and gives its address.
func watch(t *testing.T, admin string) (address string) {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile("../../deploy/prometheus/humanqa.rules.yml")
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(patience.ReplaceAllString(hurriedRules.Replace(string(rules)), "")), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), fmt.Appendf(nil, `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs: [{job_name: humanqa, static_configs: [{targets: [%q]}]}]
`, admin), 0o600))
	address = process.Address(t)
	cmd := exec.CommandContext(context.Background(), *prometheusBinary, "--config.file="+filepath.Join(dir, "prometheus.yml"), //nolint:gosec // the test's flag
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	server := process.Start(t, cmd)
	t.Cleanup(func() { server.Stop(syscall.SIGTERM) })
	return address
}

// alarms is a service that is brought into trouble.
type alarms struct {
	*program
	instance     *instance
	db           *sql.DB
	account, key string
	address      string // Prometheus'
}

// firing are the alerts that fire.
func (a *alarms) firing() map[string]bool {
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	res, err := http.Get("http://" + a.address + "/api/v1/alerts") //nolint:noctx // loopback
	if err != nil {
		return nil // it starts
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	must.NoError(a.t, json.NewDecoder(res.Body).Decode(&answer))
	fires := map[string]bool{}
	for _, alert := range answer.Data.Alerts {
		if alert.State == "firing" {
			fires[alert.Labels["alertname"]] = true
		}
	}
	return fires
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

func (a *alarms) holdDeliveries() {
	project := a.call(http.StatusCreated, "POST", "/v1/projects", a.key, map[string]any{"name": "alarmed", "webhookUrl": "https://127.0.0.1:8443/"})
	a.refuse("held", "UPDATE", "webhooks.deliveries", "", "55P03")
	job := a.call(http.StatusCreated, "POST", "/v1/jobs", a.key, submission(1, "projectId", project.text("projectId")))
	a.call(http.StatusOK, "POST", "/v1/jobs/"+job.text("jobId")+"/cancel", a.key, nil)
}

func (a *alarms) loseEvidence() {
	_, checker := a.newChecker()
	job := a.call(http.StatusCreated, "POST", "/v1/jobs", a.key, submission(1)).text("jobId")
	claim := a.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": job})
	folder := filepath.Join(a.dir, "evidence")
	must.NoError(a.t, os.RemoveAll(folder))
	must.NoError(a.t, os.WriteFile(folder, nil, 0o600))
	const form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\r\n\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\r\n--b--\r\n"
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
	eventually.Within(a.t, 20*time.Second, func() error {
		if !a.firing()["HumanqaOverload"] {
			return fmt.Errorf("no overload")
		}
		return nil
	})
	must.NoError(a.t, tx.Rollback())
	sent.Wait()
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

func (a *alarms) loseTable() {
	a.exec("ALTER TABLE " + a.table("credit_accounts") + " RENAME TO lost")
	a.submitOne()
}

func (a *alarms) loseView() {
	a.exec("ALTER VIEW readmodel.credit_accounts RENAME TO lost")
	eventually.True(a.t, "the errors are many", func() bool { // a rate needs two looks
		if r, err := a.try("GET", "/v1/credits", a.key, nil); err != nil || r.status < http.StatusInternalServerError {
			a.t.Errorf("credits without a view: %d %s %v", r.status, r.body, err)
		}
		return a.firing()["HumanqaErrors"]
	})
}
