package main

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/doctor"
	"humanqa/internal/selfsigned"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// examined is what humanqa doctor prints.
type examined struct {
	Settings []service.Setting
	Findings []doctor.Finding
}

func (e examined) finding(part string) doctor.Finding {
	for _, f := range e.Findings {
		if f.Part == part {
			return f
		}
	}
	return doctor.Finding{}
}

func (e examined) setting(name string) service.Setting {
	for _, s := range e.Settings {
		if s.Name == name {
			return s
		}
	}
	return service.Setting{}
}

// A healthy service has no wrong part, and a host without an address is a note.
func doctorCommands(t *testing.T, s *instance) {
	must.NoError(t, os.Chmod(s.dir, 0o700))
	_, key := s.newAccount(1)
	s.newProject(key, "https://hooks.invalid/in")
	stdout, stderr, err := s.tryCLI("--json", "doctor") // a machine without name servers has a wrong part
	var told examined
	must.NoError(t, json.Unmarshal([]byte(stdout), &told))
	for _, part := range []string{"data", "service", "database", "keys", "log", "clock", "disk", "evidence", "tls"} {
		if f := told.finding(part); f.State != doctor.OK {
			t.Errorf("%s is %+v, want ok", part, f)
		}
	}
	var fsync string
	must.NoError(t, pgtest.NewDB(t, s.dsn()).GetContext(t.Context(), &fsync, "SHOW fsync"))
	unsafe := slices.ContainsFunc(told.Findings, func(f doctor.Finding) bool {
		return f.State == doctor.Wrong && f.Part == "database" && strings.HasPrefix(f.Detail, "the server has fsync and full_page_writes off") && f.Next != ""
	})
	if unsafe != (fsync == "off") { // a private server of tests has it off
		t.Errorf("fsync is %s, and the doctor found %+v", fsync, told.Findings)
	}
	f := told.finding("webhooks")
	if f.State == doctor.OK || !strings.Contains(f.Detail, "hooks.invalid") || f.Next == "" || (err != nil) != (f.State == doctor.Wrong || unsafe) {
		t.Errorf("an unknown host: %+v, %v %s", f, err, stderr)
	}
	if u := told.setting("HUMANQA_DATABASE_URL"); u.From != "environment" || strings.Contains(u.Value, "@") || strings.Contains(u.Value, "?") {
		t.Errorf("the database is shown as %+v", u)
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, "evidence", "doctor", "*")); err != nil || len(left) != 0 {
		t.Errorf("the doctor left %v, %v", left, err)
	}
}

// The doctor starts nothing, and names every wrong part with its next step.
func TestTheDoctorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, os.Chmod(dir, 0o755)) // this is wrong on purpose
	pair, err := selfsigned.New(&x509.Certificate{DNSNames: []string{"qa.example.com"}}, time.Minute, nil)
	must.NoError(t, err)
	cert, certKey := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must.NoError(t, os.WriteFile(cert, pair.Certificate, 0o600))
	must.NoError(t, os.WriteFile(certKey, pair.Key, 0o600))
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // at once
	must.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	file := filepath.Join(dir, "env")
	must.NoError(t, os.WriteFile(file, []byte(`# a comment
HUMANQA_BASE_URL = "https://elsewhere.example.com"
HUMANQA_TLS_CERT=`+cert+`
HUMANQA_TLS_KEY=`+certKey+`
HUMANQA_EVENTSTORE_URL=esdb://admin:hidden1@127.0.0.1:1?tls=false
HUMANQA_DATABASE_URL=postgres://ann:hidden2@127.0.0.1:1/qa?sslmode=disable
HUMANQA_EVIDENCE_URL=file://`+file+`
HUMANQA_SMTP_URL=smtp://127.0.0.1:1?starttls=off
HUMANQA_SMTP_FROM=qa@example.com
HUMANQA_LOG_LEVEL=debug
`), 0o600))
	p := &program{t: t, environ: []string{"HUMANQA_DATA_DIR=" + dir, "HUMANQA_ADDR=" + taken.Addr().String(), "HUMANQA_LOG_LEVEL=error"}}
	stdout, stderr, err := p.tryCLI("doctor", "--env-file", file, "--roles", "api,projector")
	if exitCode(err) != exitFailed || !strings.Contains(stderr, "7 of 11 parts are wrong") || strings.Contains(stdout+stderr, "hidden") {
		t.Errorf("%v: %s%s", err, stdout, stderr)
	}
	for _, want := range []string{
		"wrong  data ", "chmod 700 " + dir,
		"wrong  service ", "set HUMANQA_ADDR to a free address",
		"wrong  database ", "in HUMANQA_DATABASE_URL right?",
		"wrong  log ", "is the address right",
		"note   keys ", "note   clock ", "ok     disk ",
		"wrong  evidence ", "check HUMANQA_EVIDENCE_URL",
		"wrong  tls ", "get a certificate for the host of HUMANQA_BASE_URL",
		"wrong  mail ", "check host and port in HUMANQA_SMTP_URL",
		fmt.Sprintf("%-34s  %s   (%s)", "HUMANQA_BASE_URL", "https://elsewhere.example.com", file),
		fmt.Sprintf("%-34s  %s   (%s)", "HUMANQA_LOG_LEVEL", "error", "environment"),
		fmt.Sprintf("%-34s  %s   (%s)", "HUMANQA_ROLES", "api,projector", "flag"),
		fmt.Sprintf("%-34s  %s   (%s)", "HUMANQA_RATE_LIMIT", "60", "default"),
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q:\n%s", want, stdout)
		}
	}

	must.NoError(t, os.WriteFile(file, []byte("HUMANQA_ADDR=:8080\nsecret words\n"), 0o600))
	if _, stderr, err := p.tryCLI("version", "--env-file", file); exitCode(err) != exitUsage ||
		!strings.Contains(stderr, file+":2 is no line such as") || strings.Contains(stderr, "secret") {
		t.Errorf("a broken file: %v %s", err, stderr)
	}
}
