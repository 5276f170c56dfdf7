package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"humanqa/internal/wholefile"
)

const (
	// keysetSize bounds a keyset. One key has 300 bytes.
	keysetSize = 1 << 20
	// commandTime bounds a program that gives or takes the keyset.
	commandTime = 10 * time.Second
	// commandRest is how long a child of the program may hold its output open.
	commandRest = time.Second
)

// ErrNoKeyset says that there is no file of the keyset.
var ErrNoKeyset = errors.New("is missing")

// ReadKeyset reads the master keyset from the program that gives it, else from its file.
func ReadKeyset(ctx context.Context, cfg Config) (*Keyset, error) {
	from := cfg.source()
	var text []byte
	var err error
	if cfg.KeyCommand != "" {
		text, err = runCommand(ctx, cfg.KeyCommand, nil)
	} else {
		text, err = readFile(cfg.KeyFile)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w", from, err)
	}
	return parseKeyset(text, from)
}

// source names the place of the keyset in an error.
func (c Config) source() string {
	if c.KeyCommand != "" {
		return "HUMANQA_MASTER_KEY_COMMAND"
	}
	return "master key file " + c.KeyFile
}

// readFile reads a keyset in cleartext: the file is the root of trust. Its mode (0600, or
// lent by root, checked) protects it, and it is neither in the database nor in a dump of it.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoKeyset
	}
	if err != nil {
		return nil, fmt.Errorf("does not open: %w", errors.Unwrap(err)) // the path is named already
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("is not a regular file: name one by HUMANQA_MASTER_KEY_FILE")
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && !lent(info, os.Geteuid()) {
		return nil, fmt.Errorf("has mode %04o, readable by others: run chmod 600 %s", mode, path)
	}
	return io.ReadAll(io.LimitReader(f, keysetSize))
}

// lent says that root let one group read the file, to which this process belongs. A secret that
// Kubernetes mounts for a user other than root has no other form.
func lent(info fs.FileInfo, uid int) bool {
	file, ok := info.Sys().(*syscall.Stat_t)
	return ok && file.Uid == 0 && uid != 0 && info.Mode().Perm()&0o037 == 0
}

// runCommand runs a program with its arguments, which blanks separate, and gives its standard
// output. The output may be the keyset, so no error quotes it.
func runCommand(ctx context.Context, command string, input []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, errors.New("names no program")
	}
	program := exec.CommandContext(ctx, words[0], words[1:]...)
	program.WaitDelay = commandRest
	out := bounded{left: keysetSize}
	program.Stdin, program.Stdout = bytes.NewReader(input), &out
	err := program.Run()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("gave no answer within %s: %w", commandTime, ctx.Err())
	case out.left < 0:
		return nil, fmt.Errorf("printed more than %d bytes, which is no keyset", keysetSize)
	case errors.As(err, &ended):
		return nil, fmt.Errorf("ended with %w: run it by hand as the service's user to see the reason", ended)
	case err != nil:
		return nil, fmt.Errorf("does not run: %w", err)
	}
	return out.text.Bytes(), nil
}

// bounded keeps the output of a program, and refuses more than is left.
type bounded struct {
	text bytes.Buffer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("too long")
	}
	return b.text.Write(p)
}

// replaceFile puts another keyset in the place of a file, and keeps its mode. A crash leaves
// the old one or the new one. A file of another user would become this one's, and its readers
// would lose it: it is refused.
func replaceFile(path string, text []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if file, ok := info.Sys().(*syscall.Stat_t); ok && int(file.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to the user %d: run the command as that user", file.Uid)
	}
	if err := wholefile.Write(path, text, info.Mode().Perm()); err != nil {
		return err
	}
	return wholefile.SyncDir(filepath.Dir(path))
}

// createFile writes a fresh keyset beside path and links it there, so the file
// appears whole or not at all. Of two processes at their first start one wins, and
// both go on with its file. A crash leaves at most a stray ".master-*" file that
// nothing reads.
func createFile(path string) error {
	fresh, err := newKeyset()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".master-*") // O_EXCL, 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // the link stays
	_, err = f.Write(fresh.Text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return wholefile.SyncDir(dir)
}
