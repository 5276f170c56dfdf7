package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/sirupsen/logrus"

	"humanqa/bench/twin"
)

// twinCommand makes this program be the twin: it runs as a process of its own,
// as the service does.
const twinCommand = "twin"

// runTwin serves until ctx ends. The keys are left in a file once it is ready.
func runTwin(ctx context.Context, args []string) int {
	var c twin.Config
	var keysFile string
	flags := flag.NewFlagSet(twinCommand, flag.ContinueOnError)
	flags.StringVar(&c.Dir, "dir", "", "data directory")
	flags.StringVar(&c.Addr, "addr", "", "where to serve")
	flags.IntVar(&c.Accounts, "accounts", 1, "how many to open")
	flags.StringVar(&keysFile, "keys", "", "file for their keys")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	c.Credits = plenty
	c.Log = logrus.New() // as `humanqa serve` logs
	c.Log.SetOutput(os.Stderr)
	c.Log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: "2006-01-02T15:04:05.000Z07:00"})
	err := twin.Serve(ctx, c, func(keys []string) error {
		data, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		return os.WriteFile(keysFile, data, 0o600)
	})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "twin:", err)
		return exitBroken
	}
	return exitDone
}

// startTwin starts it on a Postgres of its own and gives the accounts' keys.
func (b *bench) startTwin(ctx context.Context, accounts int, stops *stops) (_ *process, keys []string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	dir, err := b.folder("twin")
	if err != nil {
		return nil, nil, err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, nil, err
	}
	keysFile := filepath.Join(b.work, "twin.keys")
	p, err := b.start(ctx, "twin", addr, nil, program, twinCommand,
		"-dir", dir, "-addr", addr, "-accounts", strconv.Itoa(accounts), "-keys", keysFile)
	if err != nil {
		return nil, nil, err
	}
	stops.add(p.stop)
	data, err := os.ReadFile(keysFile)
	if err == nil {
		err = json.Unmarshal(data, &keys)
	}
	if err == nil && len(keys) != accounts {
		err = errors.New("it did not open every account")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the twin's keys: %w", err)
	}
	return p, keys, nil
}
