// Package store keeps what hqa remembers on this machine, in the user's config directory:
// the keys, readable by the user alone, and the latest submission of each directory.
package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/wholefile"
)

// Store is a directory. One with an empty path remembers nothing, as on a machine
// without a home.
type Store struct{ dir string }

// Open names the directory: XDG_CONFIG_HOME, else the system's, then hqa. get reads the
// environment.
func Open(get func(string) string) Store {
	if dir := get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return Store{filepath.Join(dir, "hqa")}
	}
	home := get("HOME")
	switch {
	case runtime.GOOS == "windows" && get("AppData") != "":
		return Store{filepath.Join(get("AppData"), "hqa")}
	case home == "":
		return Store{}
	case runtime.GOOS == "darwin":
		return Store{filepath.Join(home, "Library", "Application Support", "hqa")}
	}
	return Store{filepath.Join(home, ".config", "hqa")}
}

// Dir is the directory, empty on a machine without a home.
func (s Store) Dir() string { return s.dir }

// Keys are the keys by the URL of the service that each belongs to. A key never goes to
// another service.
type Keys struct {
	URL  string            `json:"url"` // of the latest login
	Keys map[string]string `json:"keys"`
}

const keysFile = "keys.json"

// Keys reads the keys. A file that others may read is refused.
func (s Store) Keys() (Keys, error) {
	var k Keys
	path := filepath.Join(s.dir, keysFile)
	if s.dir == "" {
		return k, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return k, fmt.Errorf("others may read the keys in %s: run chmod 600 %s, and consider new keys", path, path)
	}
	return k, read(path, &k)
}

// Put keeps a key of a service, or forgets it where the key is empty.
func (s Store) Put(url, key string) error {
	if s.dir == "" {
		return errors.New("there is no home directory to keep a key in: set HQA_API_KEY instead")
	}
	k, err := s.Keys()
	if err != nil {
		return err
	}
	if k.Keys == nil {
		k.Keys = map[string]string{}
	}
	if key == "" {
		delete(k.Keys, url)
	} else {
		k.URL, k.Keys[url] = url, key
	}
	return s.write(keysFile, k)
}

// Path is the file of the keys, for messages.
func (s Store) Path() string { return filepath.Join(s.dir, keysFile) }

// Login is a sign-in that waits for a person's word. Its device code is a secret until then.
type Login struct {
	URL string `json:"url"`
	humanqa.DeviceLogin
}

const loginFile = "login.json"

// PutLogin keeps a sign-in; an empty one forgets it.
func (s Store) PutLogin(l Login) error {
	if l.DeviceCode == "" {
		err := os.Remove(filepath.Join(s.dir, loginFile))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	if s.dir == "" {
		return errors.New("there is no home directory to keep a sign-in in: set HQA_API_KEY instead")
	}
	return s.write(loginFile, l)
}

// Login is the sign-in that waits at the service.
func (s Store) Login(url string) (l Login, err error) {
	if err = read(filepath.Join(s.dir, loginFile), &l); err == nil && l.URL != url {
		err = fs.ErrNotExist
	}
	return l, err
}

// Run is the last submission of a directory.
type Run struct {
	Service string            `json:"service"`
	BatchID string            `json:"batchId,omitempty"`
	JobIDs  []string          `json:"jobIds"`
	Files   map[string]string `json:"files,omitempty"` // by job, of tests that stand in files
	Of      []string          `json:"of,omitempty"`    // the jobs that these are retests of
	Step    string            `json:"step,omitempty"`  // of the pipeline that retested
	At      time.Time         `json:"at"`
	// Loops are the loop sessions of this directory, by the names of the loops.
	Loops map[string]string `json:"loops,omitempty"`
	// Unsettled are submissions whose verdict was not told yet, by submission. The same
	// command takes its Idempotency-Key again, and so pays once.
	Unsettled map[string]Unsettled `json:"unsettled,omitempty"`
}

// Unsettled is a submission whose verdict was not told yet.
type Unsettled struct {
	Key    string    `json:"key"`
	At     time.Time `json:"at"`
	JobIDs []string  `json:"jobIds,omitempty"` // none: the answer did not arrive either
}

func runFile(workDir string) string {
	sum := sha256.Sum256([]byte(workDir))
	return filepath.Join("runs", hex.EncodeToString(sum[:8])+".json")
}

// LastRun reads the last submission of the directory; without a record it is empty.
func (s Store) LastRun(workDir string) (Run, error) {
	r := Run{Loops: map[string]string{}, Unsettled: map[string]Unsettled{}}
	if s.dir == "" {
		return r, nil
	}
	err := read(filepath.Join(s.dir, runFile(workDir)), &r)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

// KeepRun remembers it.
func (s Store) KeepRun(workDir string, r Run) error {
	if s.dir == "" {
		return nil
	}
	return s.write(runFile(workDir), r)
}

func read(path string, out any) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("read %s: %w: remove it and log in again", path, err)
	}
	return nil
}

// write replaces a file in one step: a crash leaves the old one.
func (s Store) write(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(path, append(raw, '\n'), 0o600)
}
