package tabular

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// program writes Parquet for this one, and stands beside it: its library would be a tenth of
// the service.
const program = "humanqa-parquet"

// Ready says why the format cannot be written on this machine.
func (f Format) Ready() error {
	if f != Parquet {
		return nil
	}
	_, err := beside()
	return err
}

func beside() (path string, err error) {
	self, err := os.Executable()
	path = filepath.Join(filepath.Dir(self), program)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("%s writes Parquet, and is missing: put it beside humanqa, or run make build: %w", program, err)
	}
	return path, nil
}

// throughProgram gives the program the columns, and then the rows. A program that is stopped
// leaves a file without an end.
func throughProgram(ctx context.Context, w io.Writer, columns []Column, rows Rows) error {
	path, err := beside()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var said strings.Builder
	cmd := exec.CommandContext(ctx, path)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, w, &said // it needs none of our secrets
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	out := bufio.NewWriter(in)
	err = json.NewEncoder(out).Encode(columns)
	if err == nil {
		err = rows(ctx, (&ndjson{out, columns}).write)
	}
	if err == nil {
		err = errors.Join(out.Flush(), in.Close())
	}
	if err != nil {
		stop()
	}
	if ended := cmd.Wait(); ended != nil && (err == nil || errors.Is(err, syscall.EPIPE)) {
		return fmt.Errorf("%s: %w: %s", program, ended, strings.TrimSpace(said.String()))
	}
	return err
}
