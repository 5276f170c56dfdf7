package service

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgimage"
	"humanqa/internal/testing/pgtest"
)

// standBy starts a stand-by of a primary, which takes its log by streaming.
func standBy(t *testing.T, primary *pgdev.Server, dir string) *pgdev.Server {
	t.Helper()
	home, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	must.NoError(t, err)
	rules, err := os.OpenFile(filepath.Join(home, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	must.NoError(t, err)
	_, err = rules.WriteString("local replication all trust\n")
	must.NoError(t, err)
	must.NoError(t, rules.Close())
	_, err = pgtest.NewDB(t, primary.DSN("postgres")).ExecContext(t.Context(), "SELECT pg_reload_conf()")
	must.NoError(t, err)

	bin, err := pgdev.Installed(t.Context(), dir)
	must.NoError(t, err)
	base := filepath.Join(t.TempDir(), "base")
	eventually.Within(t, eventually.Patience, func() error { // the rules may not be read yet
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_basebackup"), "--pgdata="+base, "--write-recovery-conf",
			"--checkpoint=fast", "--no-sync", "--dbname="+primary.DSN("postgres")).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	own := pgtest.NewDataDir(t)
	must.NoError(t, os.Mkdir(own, 0o700))
	must.NoError(t, pgimage.Plant(t.Context(), own, base))
	return startPostgres(t, own)
}

func startPostgres(t *testing.T, dir string) *pgdev.Server {
	t.Helper()
	server, err := pgdev.Start(t.Context(), pgdev.Config{Dir: dir})
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, server.Stop(context.Background())) })
	return server
}

func TestTheServiceFollowsPostgresToItsStandBy(t *testing.T) {
	t.Parallel()
	dir := pgtest.NewDataDir(t)
	pgtest.Plant(t, dir)
	primary := startPostgres(t, dir)
	second := standBy(t, primary, dir)
	u, err := url.Parse(primary.DSN(pgdev.Database))
	must.NoError(t, err)
	both := u.Query()
	both.Set("host", primary.SocketDir+","+second.SocketDir)
	both.Set("port", strconv.Itoa(primary.Port)+","+strconv.Itoa(second.Port))
	u.RawQuery = both.Encode()
	cfg, log := serveConfig(t, "HUMANQA_DATABASE_URL="+u.String())
	cfg.Demo = true
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	must.NoError(t, Serve(ctx, cfg, log, func(s *Service) {
		defer stop()
		base, key := s.cfg.BaseURL, s.demo.APIKey
		before, err := submits(ctx, base, key, http.StatusCreated)
		must.NoError(t, err)
		must.NoError(t, primary.Stop(ctx))
		_, err = pgtest.NewDB(t, second.DSN(pgdev.Database)).ExecContext(ctx, "SELECT pg_promote()")
		must.NoError(t, err)
		var after string
		eventually.Within(t, eventually.Patience, func() (err error) {
			after, err = submits(ctx, base, key, http.StatusCreated)
			return err
		})
		eventually.Within(t, eventually.Patience, func() error { return answers(base, http.StatusOK, "ready") })
		for _, id := range []string{before, after} {
			must.NoError(t, asks(ctx, http.MethodGet, base+"/v1/jobs/"+id, key, "", http.StatusOK, nil))
		}
	}))
}
