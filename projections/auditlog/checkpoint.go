package auditlog

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
)

// Checkpoint is the log's signed statement about its first Size leaves.
type Checkpoint struct {
	Origin   string // the log's name
	Size     int64
	Root     tlog.Hash
	Position domain.Position // of the last leaf's event
	Time     time.Time
	Note     string // as it was signed
}

// text is the note's text, in the format of C2SP's tlog-checkpoint with two
// lines of our own behind the root.
func (c Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\nposition %s\ntime %s\n", c.Origin, c.Size,
		base64.StdEncoding.EncodeToString(c.Root[:]), c.Position, c.Time.UTC().Format(time.RFC3339))
}

// ErrNotSigned says that this log has not signed the note.
var ErrNotSigned = errors.New("no checkpoint that this log has signed")

// Open reads a signed checkpoint by the log's verifier key.
func Open(signed, verifier string) (Checkpoint, error) {
	v, err := note.NewVerifier(strings.TrimSpace(verifier))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the verifier key is none (humanqa audit key prints it): %w", err)
	}
	if !strings.HasSuffix(signed, "\n") { // such as in a shell's $(cat checkpoint)
		signed += "\n"
	}
	n, err := note.Open([]byte(signed), note.VerifierList(v))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w, whose name and key is %s: %w", ErrNotSigned, verifier, err)
	}
	c, err := parse(n.Text)
	if err == nil && c.Origin != v.Name() {
		err = fmt.Errorf("it is about the log %s", c.Origin)
	}
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%w: %w", ErrNotSigned, err)
	}
	c.Note = signed
	return c, nil
}

func parse(text string) (c Checkpoint, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 {
		return c, errors.New("it has too few lines")
	}
	c.Origin = lines[0]
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 1 {
		return c, fmt.Errorf("its size is %q", lines[1])
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return c, fmt.Errorf("its root is %q", lines[2])
	}
	c.Root = tlog.Hash(root)
	for _, line := range lines[3:] {
		switch name, value, _ := strings.Cut(line, " "); name {
		case "position":
			if _, err := fmt.Sscanf(value, "%d/%d", &c.Position.Commit, &c.Position.Prepare); err != nil {
				return c, fmt.Errorf("its position is %q", value)
			}
		case "time":
			if c.Time, err = time.Parse(time.RFC3339, value); err != nil {
				return c, fmt.Errorf("its time is %q", value)
			}
		}
	}
	return c, nil
}

func (c Checkpoint) String() string {
	return fmt.Sprintf("%d events, to position %s, signed %s", c.Size, c.Position, c.Time.UTC().Format(time.RFC3339))
}
