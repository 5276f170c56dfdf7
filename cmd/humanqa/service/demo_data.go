package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"

	"humanqa/domain"
	"humanqa/internal/receiver"
	"humanqa/internal/wholefile"
)

// DemoCredits are the credits of a new demo account.
const DemoCredits = 1000

// DemoFile holds the facts that `humanqa demo`, a script or a person needs to try the
// service (operating contract).
type DemoFile struct {
	BaseURL    string `json:"baseUrl"`
	AccountID  string `json:"accountId"`
	APIKey     string `json:"apiKey"`
	CheckerKey string `json:"checkerKey"`
}

// DemoPath is where the demo file is.
func DemoPath(dataDir string) string { return filepath.Join(dataDir, "demo.json") }

// ReadDemo gives fs.ErrNotExist before the first start with --demo.
func ReadDemo(dataDir string) (DemoFile, error) {
	var d DemoFile
	content, err := os.ReadFile(DemoPath(dataDir))
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(content, &d); err != nil {
		return d, fmt.Errorf("read %s: %w: remove it for a new demo account", DemoPath(dataDir), err)
	}
	return d, nil
}

// write replaces the file whole: a reader sees the old one or the new one.
func (d DemoFile) write(dataDir string) error {
	content, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := wholefile.Write(DemoPath(dataDir), append(content, '\n'), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", DemoPath(dataDir), err)
	}
	return nil
}

// seedDemo makes the demo account and checker on the first start; later ones only bring
// the address up to date. at is the last write, zero if there was none. The file comes
// last: a crash before it leaves an account with a lost key, and the next start makes
// another.
func seedDemo(ctx context.Context, c *Core, baseURL string) (d DemoFile, at domain.Position, err error) {
	d, err = ReadDemo(c.Config.DataDir)
	switch {
	case err == nil && d.BaseURL == baseURL:
		return d, at, nil
	case errors.Is(err, fs.ErrNotExist):
		accountID, key, err := OpenAccount(ctx, c.Commands, OperatorCause(""),
			NewAccount{Name: "Demo", KeyName: "Demo", Credits: DemoCredits})
		if err != nil {
			return d, at, fmt.Errorf("seed the demo account: %w", err)
		}
		checker, err := c.Commands.CreateChecker(ctx, OperatorCause(""), "Demo checker", nil)
		if err != nil {
			return d, at, fmt.Errorf("seed the demo checker: %w", err)
		}
		d.AccountID, d.APIKey, d.CheckerKey = accountID, key.Token, checker.Token
		at = key.Position.Max(checker.Position)
	case err != nil:
		return d, at, err
	}
	d.BaseURL = baseURL
	return d, at, d.write(c.Config.DataDir)
}

// demoKey is the API key of the demo's file; empty: there is no demo.
func (s *Service) demoKey() string {
	if !s.cfg.Demo {
		return ""
	}
	d, err := ReadDemo(s.cfg.DataDir)
	if err != nil {
		return "" // a start of the demo tells what is wrong with the file
	}
	return d.APIKey
}

// forDemo lets deliveries reach receivers on this machine, and trusts the certificates of
// `hqa listen`, unless the operator named others.
//
// The certificates are made here already, so that the first delivery trusts them. If a
// receiver cannot listen now, it cannot listen later either.
func forDemo(ctx context.Context, cfg Config) (Config, error) {
	cfg.WebhookAllow = append(cfg.WebhookAllow[:len(cfg.WebhookAllow):len(cfg.WebhookAllow)],
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	if cfg.WebhookCAFile == "" {
		cfg.WebhookCAFile = receiver.CAFile(ReceiverDir(cfg))
	}
	listener, err := receiver.New(ctx, receiver.Config{Dir: ReceiverDir(cfg)})
	if err != nil {
		return cfg, err
	}
	return cfg, listener.Close()
}

// ReceiverDir is where the demo keeps its receiver's certificates. `hqa listen` takes them, too.
func ReceiverDir(cfg Config) string { return filepath.Join(cfg.DataDir, "listen") }
