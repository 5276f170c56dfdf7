package evidence

import (
	"fmt"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

const (
	// keptFree is what recordings leave free of evidence's disk, in bytes: a
	// twentieth of it, and at most so much. The log, the read models and pictures
	// can then go on.
	keptFree = 1 << 30
	// retryAfterFull is what a client is told to wait, in seconds, for room.
	retryAfterFull = 60
)

// roomFor refuses what would take the last of the disk.
func (s *Service) roomFor(more int64) error {
	free, total, err := s.Files.Room()
	if err != nil {
		return domain.Unavailable(err)
	}
	if total == 0 || free-more >= min(keptFree, total/20) {
		return nil
	}
	return wire.RetryAfter(&domain.Error{
		Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
		Message: "the service's disk is nearly full: it takes no recordings for now",
		Hint:    "keep the part and send it again later; everything else goes on",
		Cause:   fmt.Errorf("%d of %d bytes are free where evidence is kept", free, total),
	}, retryAfterFull)
}
