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
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

const rulesFile = "../../deploy/prometheus/humanqa.rules.yml"

var prometheusBinary = flag.String("prometheus", "", "have TestAlertsFire run this Prometheus server")

// hurriedRules turns the rules into ones with seconds for minutes, so that a test need not
// wait. A checkpoint is signed once a minute, so events wait for that long without a cause.
// promtool plays the rules as they are (scripts/alerts.sh).
var hurriedRules = strings.NewReplacer("> 0.7", "> 0.0002", "> 60", "> 1", "> 10000", "> 10", "> 300", "> 70", "> 200000", "> 90", "> 3600", "> 3",
	"[10m]", "[20s]", "[5m]", "[20s]", "[6h], 24 * 3600", "[20s], 20")

var (
	patience  = regexp.MustCompile(`(?m)^\s+for: .*\n`)
	ruleNames = regexp.MustCompile(`(?m)^ +- alert: (\S+)$`)
)

// Prometheus watches a running service by the alerts' rules. Each trouble is caused in the
// service, its database or its folder, and its alert fires, which did not before. Every rule
// has its trouble. `make alarms` runs it.
func TestAlertsFire(t *testing.T) {
	if *prometheusBinary == "" {
		t.Skip("it needs a Prometheus server: -args -prometheus FILE")
	}
	a := startAlarms(t)
	left := map[string]bool{}
	rules, err := os.ReadFile(rulesFile)
	must.NoError(t, err)
	for _, rule := range ruleNames.FindAllSubmatch(rules, -1) {
		left[string(rule[1])] = true
	}
	for _, cause := range []struct {
		name   string
		does   func()
		ends   func() // once the alerts have fired; nil: never
		alerts []string
	}{
		{"a data key is gone", a.loseKey, nil, nil}, // the service has its copy for half a minute
		{"a job waits", a.submitOne, nil, []string{"HumanqaJobsNearSLA"}},
		{"a ledger has grants, and no close", a.growLedger, nil, []string{"HumanqaLedgerNotClosed"}},
		{"no mail server answers", a.writeLetter, nil, []string{"HumanqaMailLate"}},
		{"the disk fills up", a.fillDisk, a.emptyDisk, []string{"HumanqaDiskFillsUp", "HumanqaDiskFull"}},
		{"Postgres' clock goes ahead", a.setClockAhead, a.setClockBack, []string{"HumanqaClockOff"}},
		{"no checkpoint can be written", a.refuseCheckpoints, a.allows("unsigned"), []string{"HumanqaAuditNotSigned"}},
		{"a webhook's secret does not open", a.cancelSealed, nil, []string{"HumanqaWebhookSecretsSealed"}},
		{"no delivery can be claimed", a.holdDeliveries, a.allows("held"), []string{"HumanqaDeliveriesLate"}},
		{"the folder of the evidence is gone", a.loseEvidence, nil, []string{"HumanqaEvidenceFails"}},
		{"the log stands still under load", a.overload, nil, []string{"HumanqaOverload"}},
		{"every read waits for a lock", a.holdReads, func() { a.readsGoOn() }, []string{"HumanqaConnectionsShort"}},
		{"a row is refused", a.poison, nil, []string{"HumanqaStreamsSetAside"}},
		{"a million credits come by SQL", a.tamper, nil, []string{"HumanqaAuditFindings"}},
		{"a key gets into another account by SQL", a.moveKey, nil, []string{"HumanqaFsckFindings"}},
		{"nobody checks the invariants", func() {}, nil, []string{"HumanqaFsckLate"}},
		{"a table is gone", a.loseTable, nil, []string{"HumanqaReadModelStopped", "HumanqaReadModelBehind", "HumanqaReadModelStalled"}},
		{"a view is gone", a.loseView, nil, []string{"HumanqaErrors"}},
		{"nothing reads what the service says", a.fillPipe, func() { a.readOn() }, []string{"HumanqaWorkStalled"}},
		{"the process is killed", a.instance.kill, nil, []string{"HumanqaDown"}},
	} {
		a.check(cause.name, cause.does, cause.alerts)
		if cause.ends != nil {
			cause.ends()
		}
		for _, alert := range cause.alerts {
			delete(left, alert)
		}
	}
	if len(left) > 0 {
		t.Errorf("these alerts have no cause here: %v", left)
	}
}

// check causes a trouble, and wants alerts to fire that did not before.
func (a *alarms) check(name string, does func(), alerts []string) {
	a.t.Helper()
	for _, alert := range alerts {
		if a.firing()[alert] {
			a.t.Errorf("%s fires before %s", alert, name)
		}
	}
	began := time.Now()
	does()
	for _, alert := range alerts {
		eventually.Within(a.t, eventually.Patience, func() error {
			if fires := a.firing(); !fires[alert] {
				return fmt.Errorf("%s: of %s only %v fire", name, alert, fires)
			}
			return nil
		})
		a.t.Logf("%s: %s fires after %s", name, alert, time.Since(began).Round(time.Second))
	}
}

// startAlarms starts a service on a small disk of its own, and the Prometheus that watches it.
func startAlarms(t *testing.T) *alarms {
	t.Helper()
	admin := process.Address(t)
	p := newEmbedded(t, "HUMANQA_ADMIN_ADDR="+admin, "HUMANQA_WEBHOOK_ALLOW=127.0.0.1/32",
		"HUMANQA_SMTP_URL=smtp://127.0.0.1:1?starttls=off", "HUMANQA_SMTP_FROM=qa@qa.example", // nothing is there
		"HUMANQA_LOG_LEVEL=debug")
	mountSmallDisk(t, p.dir)
	a := &alarms{program: p, instance: p.spawn(), address: watch(t, admin)}
	db, err := sql.Open("postgres", p.dsn())
	must.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() }) // nothing is pending on it
	a.db = db
	a.account, a.key = p.newAccount(100_000)
	return a
}

// watch starts Prometheus, and gives its address. A scrape takes two seconds at most where
// Postgres does not answer, and may take as long as its interval.
func watch(t *testing.T, admin string) (address string) {
	t.Helper()
	dir := t.TempDir()
	rules, err := os.ReadFile(rulesFile)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(patience.ReplaceAllString(hurriedRules.Replace(string(rules)), "")), 0o600))
	must.NoError(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), fmt.Appendf(nil, `
global: {scrape_interval: 3s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs: [{job_name: humanqa, static_configs: [{targets: [%q]}]}]
`, admin), 0o600))
	address = process.Address(t)
	cmd := exec.CommandContext(context.Background(), *prometheusBinary, "--config.file="+filepath.Join(dir, "prometheus.yml"),
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
	address      string   // Prometheus'
	sealed       []string // jobs whose deliveries cannot be signed
	sealedKey    string   // of their account
	readOn       func()   // the service's log
	readsGoOn    func()
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
