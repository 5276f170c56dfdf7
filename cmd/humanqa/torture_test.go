package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

var (
	torture     = flag.Bool("torture", false, "torture for long instead of briefly")
	tortureSeed = flag.Uint64("torture.seed", 0, "repeat the torture of this seed")
)

// The service, its Postgres, or both at once are killed again and again while clients submit
// and cancel and checkers work, verdicts are disputed, answered and decided, and most receivers
// of webhooks are hostile; ledgers are closed every fifty events. With -torture agents submit by tools, too, an operator erases tests and
// accounts, evidence goes by its age, and people get mail. Whatever was acknowledged must be
// there in the end, and told by mail. Nothing may be charged twice or without a job, or be left
// of an erased subject, and the read models must be the fold of the log.
func TestTorture(t *testing.T) {
	t.Parallel()
	seed, rounds := tortureOf(t, 3)
	dice := rand.New(rand.NewPCG(seed, 0))

	x := newStrangers(t)
	letters := mailtest.Start(t, "127.0.0.1:0", nil)
	p := newEmbedded(t, append(x.settings(), "HUMANQA_CLOSE_EVERY=50",
		"HUMANQA_SMTP_URL=smtp://"+letters.Address+"?starttls=off", "HUMANQA_SMTP_FROM=qa@example.com")...)
	s := p.spawn()
	load := newLoad(p, dice, plenty...)
	start, check, hasWorked, each := load.start, load.check, load.hasWorked, func(int) {}
	if *torture {
		x := load.with(letters, (rounds+8)/10) // one for each round that ends in 2
		start, check, hasWorked = x.start, x.check, x.hasWorked
		each = func(round int) {
			if x.mails(); round%10 == 1 {
				x.pass(x.passing[round/10])
			}
		}
	}
	load.receivers(x.URL, append([]string{"/ok"}, hostile...))
	kept := p.checkpoint(t)
	load.disputing()
	start()
	for round := range rounds {
		each(round)
		calls := 20 + dice.Uint64N(100) // when the blow falls is the point
		if *torture {
			calls *= 10
		}
		load.goesOn(calls)
		switch victim := dice.IntN(4); victim {
		case 0, 1:
			t.Logf("round %d: the service is killed", round+1)
			s.kill()
			s = p.spawn()
		case 2:
			t.Logf("round %d: Postgres is killed", round+1)
			p.killPostgres()
			s.waitReady()
		case 3:
			t.Logf("round %d: both are killed", round+1)
			p.killPostgres()
			s.kill()
			s = p.spawn()
		}
	}
	// A few rounds on a busy machine may have ended before all of it happened.
	eventually.Within(t, eventually.Patience, func() error {
		for _, path := range append(hostile, "/ok") {
			if x.requests(path) == 0 {
				return fmt.Errorf("nothing was sent to %s", path)
			}
		}
		if !hasWorked() {
			return errors.New("not all kinds of work were done under load")
		}
		return nil
	})
	load.stop()
	check()
	// Every debit has its job, or is refunded within a minute.
	eventually.Within(t, eventually.Patience, func() error {
		if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
			return fmt.Errorf("fsck: %w\n%s%s", err, stdout, stderr)
		}
		return nil
	})
	p.verifies(t, kept)
	closes := 0
	for _, id := range load.ids {
		stdout, stderr, err := p.tryCLI("replay", "credits-"+id)
		if err != nil {
			t.Fatal(err, stderr)
		}
		closes += strings.Count(stdout, "credits.closed")
	}
	t.Logf("%d jobs acknowledged, %d cancelled, %d completed, %d asked about, %d answered, %d disputed; %d ledgers closed",
		len(load.jobs), len(load.cancelled), len(load.completed), len(load.asked), len(load.answered), len(load.contests), closes)
	if closes == 0 && len(load.jobs) > 1000 {
		t.Error("no ledger was ever closed")
	}
	s.stop()
}

// tortureOf is the seed of a test's dice, which it prints, and how many rounds it has; brief
// ones without -torture.
func tortureOf(t *testing.T, brief int) (seed uint64, rounds int) {
	t.Helper()
	seed, rounds = *tortureSeed, brief
	if seed == 0 {
		seed = rand.Uint64()
	}
	if *torture {
		rounds = 60
	}
	t.Logf("seed %d: repeat with -args -torture.seed %d", seed, seed)
	return seed, rounds
}

// killPostgres stops the embedded server as `pg_ctl stop -m immediate` does:
// without a checkpoint, every connection cut.
func (p *program) killPostgres() {
	p.t.Helper()
	var raw []byte
	eventually.Within(p.t, eventually.Patience, func() (err error) { // it may be on its way up from the last blow
		raw, err = os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
		return err
	})
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(line)
	must.NoError(p.t, err)
	must.NoError(p.t, syscall.Kill(pid, syscall.SIGQUIT))
}
