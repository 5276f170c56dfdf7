package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"humanqa/internal/buildinfo"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func serveConfig(t *testing.T, settings ...string) (Config, *logrus.Logger) {
	t.Helper()
	cfg, err := ParseConfig(append(settings, "HUMANQA_DATA_DIR="+pgtest.NewDataDir(t), "HUMANQA_ADDR=127.0.0.1:0", "HUMANQA_ADMIN_ADDR=127.0.0.1:0", "HUMANQA_VOICE_ADDR=127.0.0.1:0"))
	must.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	return cfg, log
}

// Not parallel: it counts the process's goroutines.
func TestAStopLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	cfg, log := serveConfig(t)
	cfg.Demo = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	client := &http.Client{Timeout: eventually.Patience}
	b := buildinfo.This()
	thisBuildSays := fmt.Sprintf("humanqa_build_info{commit=%q,goversion=%q,version=%q}", b.Commit, b.GoVersion, b.Version)
	err := Serve(ctx, cfg, log, func(s *Service) {
		defer stop()
		for url, want := range map[string]int{
			s.cfg.BaseURL + "/healthz":                           http.StatusOK,
			s.cfg.BaseURL + "/readyz":                            http.StatusOK,
			s.cfg.BaseURL + "/nowhere":                           http.StatusNotFound,
			"http://" + s.admin.Addr().String() + "/metrics":     http.StatusOK,
			"http://" + s.admin.Addr().String() + "/debug/pprof": http.StatusOK,
			"http://" + s.admin.Addr().String() + "/readyz":      http.StatusOK,
		} {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
			must.NoError(t, err)
			res, err := client.Do(req)
			if err != nil {
				t.Errorf("%s: %v", url, err)
				continue
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Errorf("%s: %v", url, err)
			}
			if strings.HasSuffix(url, "/metrics") {
				for _, metric := range []string{
					`humanqa_projection_bytes{projection="jobs"}`, `humanqa_stream_longest_events{category="credits"}`,
					"humanqa_ledger_book_events", "humanqa_ledger_book_debits", "humanqa_ledger_book_oldest_seconds",
					`humanqa_queue_jobs{priority="urgent"}`, `humanqa_queue_oldest_seconds{priority="normal"}`, "humanqa_live_claims",
					"humanqa_checkers_present", "humanqa_claims_total", "humanqa_sla_misses_total", "humanqa_credits_granted_total",
					"humanqa_credits_used_total", "humanqa_credits_refunded_total", "humanqa_evidence_bytes",
					`humanqa_ai_failures_total{task="analysis"}`, `humanqa_ai_failures_total{task="checklist"}`, thisBuildSays,
				} {
					if !strings.Contains(string(body), "\n"+metric+" ") {
						t.Errorf("there is no metric %s", metric)
					}
				}
			}
			if err := res.Body.Close(); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			if res.StatusCode != want {
				t.Errorf("%s answered %d, want %d", url, res.StatusCode, want)
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
	client.CloseIdleConnections()
	goleak.VerifyNone(t, before)
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "eventstore.sock")); err == nil {
		t.Error("the node's socket is still there")
	}

	// The data directory is free again, and a stop while starting is a stop.
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(stopped, cfg, log, func(*Service) { t.Error("ready though stopped") }); err != nil {
		t.Errorf("a stop while starting: %v", err)
	}
	goleak.VerifyNone(t, before)
}

func TestAnAddressInUseStopsTheStart(t *testing.T) {
	t.Parallel()
	taken, err := listen(t.Context(), "HUMANQA_ADDR", "127.0.0.1:0")
	must.NoError(t, err)
	defer func() { _ = taken.Close() }() // nobody connects
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+pgtest.NewDSN(t))
	cfg.Addr = taken.Addr().String()
	err = Serve(t.Context(), cfg, log, func(*Service) { t.Error("ready without an address") })
	if err == nil || !strings.Contains(err.Error(), "address already in use: set HUMANQA_ADDR to a free address") {
		t.Errorf("error %v", err)
	}
}

func TestTheAdminAddressNobodyAskedForStopsNoStart(t *testing.T) {
	t.Parallel()
	taken, err := listen(t.Context(), "HUMANQA_ADMIN_ADDR", "127.0.0.1:0")
	must.NoError(t, err)
	defer func() { _ = taken.Close() }() // nobody connects
	cfg, log := serveConfig(t)
	var said strings.Builder
	log.SetOutput(&said)
	cfg.AdminAddr, cfg.AdminAddrGiven = taken.Addr().String(), false
	other, err := listenAdmin(t.Context(), cfg, log)
	must.NoError(t, err)
	defer func() { _ = other.Close() }() // nobody connects
	if want := cfg.AdminAddr + " is taken, metrics are at " + other.Addr().String(); !strings.Contains(said.String(), want) {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	cfg.AdminAddrGiven = true
	if _, err := listenAdmin(t.Context(), cfg, log); err == nil || !strings.Contains(err.Error(), "set HUMANQA_ADMIN_ADDR to a free address") {
		t.Errorf("an address that was asked for: %v", err)
	}
}

// Voice is beside the work: where nobody asked for its address, nothing about it
// stops a start.
func TestVoiceThatNobodyAskedForStopsNoStart(t *testing.T) {
	t.Parallel()
	taken, err := listen(t.Context(), "HUMANQA_VOICE_ADDR", "127.0.0.1:0")
	must.NoError(t, err)
	defer func() { _ = taken.Close() }() // nobody connects
	cfg, log := serveConfig(t)
	var said strings.Builder
	log.SetOutput(&said)
	cfg.VoiceAddr, cfg.VoiceAddrGiven = taken.Addr().String(), false
	other, err := listenVoice(t.Context(), cfg, log)
	if err != nil || other == nil {
		t.Fatalf("%v %v", other, err)
	}
	defer func() { _ = other.Close() }() // nobody talks
	if want := cfg.VoiceAddr + " is taken, voice is at " + other.Addr().String(); !strings.Contains(said.String(), want) {
		t.Errorf("said %q, want %q", said.String(), want)
	}
	cfg.VoiceAddr = "192.0.2.1:7882" // no address of this machine
	if none, err := listenVoice(t.Context(), cfg, log); none != nil || err != nil || !strings.Contains(said.String(), "there is no voice") {
		t.Errorf("an address that cannot be had: %v, %v", none, err)
	}
	cfg.VoiceAddrGiven = true
	if _, err := listenVoice(t.Context(), cfg, log); err == nil || !strings.Contains(err.Error(), "set HUMANQA_VOICE_ADDR to a free address") {
		t.Errorf("an address that was asked for: %v", err)
	}
}

func TestTheBaseURLNamesTheAddressThatIsServed(t *testing.T) {
	t.Parallel()
	bound := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4711}
	for addr, want := range map[string]string{
		"127.0.0.1:8080":      "127.0.0.1:8080",
		"127.0.0.1:0":         "127.0.0.1:4711",
		":8080":               "localhost:8080",
		"0.0.0.0:8080":        "localhost:8080",
		"[::]:0":              "localhost:4711",
		"[::1]:8080":          "[::1]:8080",
		"qa.example.com:8080": "qa.example.com:8080",
	} {
		if got := baseAddr(addr, bound); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

func TestALongDataDirectoryGetsAShortSocket(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	path, err := makeSocketPath(long)
	must.NoError(t, err)
	defer func() { _ = os.Remove(filepath.Dir(path)) }() // empty
	if len(path) > maxSocketPath || path != SocketPath(long) || path == SocketPath(long+"er") {
		t.Errorf("socket path %s", path)
	}
	if again, err := makeSocketPath(long); err != nil || again != path {
		t.Errorf("a second start: %s, %v", again, err)
	}
	must.NoError(t, os.Chmod(filepath.Dir(path), 0o755))
	if _, err := makeSocketPath(long); err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("a directory that others can read: %v", err)
	}
}
