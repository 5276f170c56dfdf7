package evidence

import (
	"fmt"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

const (
	// keptFree bounds the room, in bytes, that recordings leave free on the evidence's
	// disk. They leave a twentieth of the disk, but at most this, so that the log, the
	// read models and pictures can go on.
	keptFree = 1 << 30
	// retryAfterFull is the Retry-After, in seconds, while there is no room.
	retryAfterFull = 60
)

// roomFor refuses a file that would take the room to be left free.
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
