package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"humanqa/domain"
)

const (
	// spoolBytes bounds the room on the disk for all larger bodies, and SpoolShare the
	// room for those of one caller.
	spoolBytes = 2 << 30
	SpoolShare = 4 * MaxBody
	// SpoolStep is the room that a body is granted at a time, so that an announced body
	// that does not arrive holds almost none.
	SpoolStep = 1 << 20
	// parsedBodies bounds the larger bodies in memory at a time; a caller has at most one
	// of them. The others wait on the disk, where that costs little.
	parsedBodies = 2
	parseWait    = 20 * time.Second
	// PlaceWait bounds the wait for room on the disk.
	PlaceWait = 5 * time.Second
)

// Spool takes the bodies that are too large to be kept in memory while they arrive. Its
// files have no name, so that no crash leaves one behind.
type Spool struct {
	Dir   string // empty: the system's directory for temporary files
	Disk  *Quota // bytes
	Parse *Quota // bodies
}

func NewSpool(dir string) *Spool {
	return &Spool{
		Dir:   dir,
		Disk:  NewQuota(spoolBytes, SpoolShare, PlaceWait),
		Parse: NewQuota(parsedBodies, 1, parseWait),
	}
}

// Body is the body of a request, in memory or in a file. Its holder closes it.
type Body struct {
	spool *Spool
	owner string
	head  []byte   // all of it, unless there is a file
	file  *os.File // nil for a small body
	Size  int64

	granted int64 // of the disk
	parsing bool  // holds a place
}

// Open gives the body from its start.
func (b *Body) Open() io.Reader { return io.NewSectionReader(b, 0, b.Size) }

// ReadAt implements io.ReaderAt.
func (b *Body) ReadAt(p []byte, at int64) (int, error) {
	if b.file != nil {
		return b.file.ReadAt(p, at)
	}
	n := copy(p, b.head[min(at, b.Size):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Load gives the body in memory. Only few large bodies may be there at a time, so one has
// to be released as soon as it has been parsed.
func (b *Body) Load(ctx context.Context) ([]byte, error) {
	if b.file == nil {
		return b.head, nil
	}
	if err := b.spool.Parse.Acquire(ctx, b.owner, 1); err != nil {
		return nil, err
	}
	b.parsing = true
	all := make([]byte, b.Size)
	if _, err := io.ReadFull(b.Open(), all); err != nil {
		return nil, fmt.Errorf("read a spooled body: %w", err)
	}
	return all, nil
}

// parsed says that the bytes of Load are not needed any more.
func (b *Body) parsed() {
	if b.parsing {
		b.parsing = false
		b.spool.Parse.Release(b.owner, 1)
	}
}

// Close gives everything back that the body holds.
func (b *Body) Close() {
	b.parsed()
	if b.file != nil {
		_ = b.file.Close() // its bytes are not needed any more
		b.file = nil
	}
	if b.granted > 0 {
		b.spool.Disk.Release(b.owner, b.granted)
		b.granted = 0
	}
}

// unnamed makes a file that disappears with its last descriptor.
func (s *Spool) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(s.Dir, "body-"+rand.Text())
	if err != nil {
		return nil, fmt.Errorf("spool a body: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("spool a body: %w", err), f.Close())
	}
	return f, nil
}

// receive takes a body of which head has been read, and rest is still to come. The caller
// limits rest.
func (s *Spool) receive(ctx context.Context, owner string, head []byte, rest io.Reader) (_ *Body, err error) {
	b := &Body{spool: s, owner: owner}
	defer func() {
		if err != nil {
			b.Close()
		}
	}()
	if b.file, err = s.unnamed(); err != nil {
		return nil, domain.Unavailable(err)
	}
	if err := b.append(ctx, head); err != nil {
		return nil, err
	}
	chunk := make([]byte, 64<<10)
	for {
		n, err := rest.Read(chunk)
		if failed := b.append(ctx, chunk[:n]); failed != nil {
			return nil, failed
		}
		switch {
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// append writes to the file, as far as there is room for the caller.
func (b *Body) append(ctx context.Context, part []byte) error {
	for b.Size+int64(len(part)) > b.granted {
		if err := b.spool.Disk.Acquire(ctx, b.owner, SpoolStep); err != nil {
			return err
		}
		b.granted += SpoolStep
	}
	n, err := b.file.Write(part)
	b.Size += int64(n)
	if err != nil {
		return domain.Unavailable(fmt.Errorf("spool a body: %w", err)) // the disk is full
	}
	return nil
}
