package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"humanqa/domain"
)

const (
	// spoolBytes bounds what all larger bodies together may take of the disk, and
	// spoolShare what those of one caller may.
	spoolBytes = 2 << 30
	spoolShare = 4 * maxBody
	// spoolStep is what a body is granted at a time: one that was announced and
	// does not come holds next to nothing.
	spoolStep = 1 << 20
	// parsedBodies are in memory at a time, and one caller's are one of them.
	// They are waited for on the disk, where that costs little.
	parsedBodies = 2
	parseWait    = 20 * time.Second
	// placeWait bounds the wait for room on the disk.
	placeWait = 5 * time.Second
)

// places shares something out: no more than there is, to no caller more than a
// share.
type places struct {
	share int64
	wait  time.Duration

	mu    sync.Mutex
	free  int64
	held  map[string]int64 // by caller
	freed chan struct{}    // closed, and made anew, when something is given back
}

func newPlaces(n, share int64, wait time.Duration) *places {
	return &places{free: n, share: share, wait: wait, held: map[string]int64{}, freed: make(chan struct{})}
}

// take waits for n of them.
func (p *places) take(ctx context.Context, owner string, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, p.wait)
	defer cancel()
	for {
		freed := p.tryTake(owner, n)
		if freed == nil {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return domain.Unavailable(errors.New("too many large bodies at once"))
		}
	}
}

// tryTake answers nil if it took them, else what to wait for.
func (p *places) tryTake(owner string, n int64) (freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free < n || p.held[owner]+n > p.share {
		return p.freed
	}
	p.free -= n
	p.held[owner] += n
	return nil
}

func (p *places) giveBack(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free += n
	if p.held[owner] -= n; p.held[owner] == 0 {
		delete(p.held, owner)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// spool takes the bodies that are too large to be kept in memory while they
// come. Its files have no name, so that no crash leaves one behind.
type spool struct {
	dir   string  // empty: the system's directory for temporary files
	disk  *places // bytes
	parse *places // bodies
}

func newSpool(dir string) *spool {
	return &spool{
		dir:   dir,
		disk:  newPlaces(spoolBytes, spoolShare, placeWait),
		parse: newPlaces(parsedBodies, 1, parseWait),
	}
}

// body is what a request brought: in memory, or in a file. Whoever has it closes
// it.
type body struct {
	spool *spool
	owner string
	head  []byte   // all of it, unless there is a file
	file  *os.File // nil for a small body
	size  int64

	granted int64 // of the disk
	parsing bool  // holds a place
}

// open gives the body from its start.
func (b *body) open() io.Reader { return io.NewSectionReader(b, 0, b.size) }

// ReadAt implements io.ReaderAt.
func (b *body) ReadAt(p []byte, at int64) (int, error) {
	if b.file != nil {
		return b.file.ReadAt(p, at)
	}
	n := copy(p, b.head[min(at, b.size):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// load gives the body in memory. A large one is one of few there; it has to be
// let go as soon as it has been parsed.
func (b *body) load(ctx context.Context) ([]byte, error) {
	if b.file == nil {
		return b.head, nil
	}
	if err := b.spool.parse.take(ctx, b.owner, 1); err != nil {
		return nil, err
	}
	b.parsing = true
	all := make([]byte, b.size)
	if _, err := io.ReadFull(b.open(), all); err != nil {
		return nil, fmt.Errorf("read a spooled body: %w", err)
	}
	return all, nil
}

// parsed says that what load gave is needed no more.
func (b *body) parsed() {
	if b.parsing {
		b.parsing = false
		b.spool.parse.giveBack(b.owner, 1)
	}
}

// close gives everything back that the body holds.
func (b *body) close() {
	b.parsed()
	if b.file != nil {
		_ = b.file.Close() // nobody reads it any more
		b.file = nil
	}
	if b.granted > 0 {
		b.spool.disk.giveBack(b.owner, b.granted)
		b.granted = 0
	}
}

// unnamed makes a file that goes with its last descriptor.
func (s *spool) unnamed() (*os.File, error) {
	f, err := os.CreateTemp(s.dir, "body-"+rand.Text())
	if err != nil {
		return nil, fmt.Errorf("spool a body: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("spool a body: %w", err), f.Close())
	}
	return f, nil
}

// receive takes a body that is larger than head, which has been read of it. rest
// is limited by who calls.
func (s *spool) receive(ctx context.Context, owner string, head []byte, rest io.Reader) (_ *body, err error) {
	b := &body{spool: s, owner: owner}
	defer func() {
		if err != nil {
			b.close()
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
func (b *body) append(ctx context.Context, part []byte) error {
	for b.size+int64(len(part)) > b.granted {
		if err := b.spool.disk.take(ctx, b.owner, spoolStep); err != nil {
			return err
		}
		b.granted += spoolStep
	}
	n, err := b.file.Write(part)
	b.size += int64(n)
	if err != nil {
		return domain.Unavailable(fmt.Errorf("spool a body: %w", err)) // the disk is full
	}
	return nil
}
