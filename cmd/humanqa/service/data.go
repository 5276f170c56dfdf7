package service

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/vault"
)

// defaultDataDir is HUMANQA_DATA_DIR unless it is set.
const defaultDataDir = ".humanqa"

// NoData is the refusal to work on data that is not there: only serve and
// restore make any. A typing error in a directory's name, or another working
// directory, would otherwise give a second, empty world that looks like the
// loss of the first.
func NoData(cfg Config) error {
	if cfg.DatabaseURL != "" {
		return fmt.Errorf(
			"no data here: there is no keyset %s, did you mean another HUMANQA_MASTER_KEY_FILE or HUMANQA_DATA_DIR? Only humanqa serve makes one", cfg.MasterKeyFile)
	}
	if other := likelyData(cfg.DataDir); other != "" {
		return fmt.Errorf("no data here: %s, did you mean HUMANQA_DATA_DIR=%s", cfg.DataDir, other)
	}
	return fmt.Errorf("no data here: %s, did you mean another HUMANQA_DATA_DIR? Only humanqa serve makes one", cfg.DataDir)
}

// BecomeOwner comes before any code that makes a data directory. Files that root
// makes in another user's checkout are of no use to that user.
func BecomeOwner(cfg Config, log logrus.FieldLogger) error {
	name, err := datadir.Become(cfg.DataDir)
	if name != "" {
		log.WithField("user", name).Info("running as the user to whom the data directory belongs, and no longer as root")
	}
	return err
}

// Vault names the keyset, and the database with the keys that it wraps.
func (c Config) Vault(db *sqlx.DB) vault.Config {
	return vault.Config{KeyFile: c.MasterKeyFile, KeyCommand: c.MasterKeyCommand, DB: db}
}

// HasData says whether a service has run here. With a Postgres of the operator's own, the
// keyset is the sign.
func HasData(cfg Config) bool {
	if cfg.DatabaseURL == "" {
		return pgdev.Exists(cfg.DataDir)
	}
	if cfg.MasterKeyCommand != "" {
		return true
	}
	_, err := os.Stat(cfg.MasterKeyFile)
	return err == nil
}

// likelyData looks for a data directory at the places that dir was likely meant to name:
// inside it, in a directory above, or beside the binary's. Empty: none was found.
func likelyData(dir string) string {
	places := []string{dir}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		places = append(places, up)
		if up == filepath.Dir(up) {
			break
		}
	}
	if program, err := os.Executable(); err == nil {
		places = append(places, filepath.Dir(program), filepath.Dir(filepath.Dir(program)))
	}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, home)
	}
	for _, place := range places {
		if found := filepath.Join(place, defaultDataDir); found != dir && pgdev.Exists(found) {
			return found
		}
	}
	return ""
}

// RestoreMark is a file in the data directory from before the first write of a
// restore until after its last. Data beside it is incomplete.
const RestoreMark = "RESTORE-UNFINISHED.txt"

// RefuseHalfRestored refuses a data directory whose restore was cut off.
func RefuseHalfRestored(cfg Config) error {
	if IsHalfRestored(cfg) {
		return fmt.Errorf("a restore into %s was cut off: run humanqa restore again, or remove the directory", cfg.DataDir)
	}
	return nil
}

// IsHalfRestored says that a restore into the data directory was cut off.
func IsHalfRestored(cfg Config) bool {
	_, err := os.Lstat(filepath.Join(cfg.DataDir, RestoreMark))
	return err == nil
}
