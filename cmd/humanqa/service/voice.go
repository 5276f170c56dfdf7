package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/sirupsen/logrus"

	"humanqa/internal/voice"
)

// listenVoice opens voice's port; nil: there is no voice, and sessions say so. A default
// address that is taken is no reason not to serve: then it is another one, or none.
func listenVoice(ctx context.Context, cfg Config, log *logrus.Logger) (*voice.Server, error) {
	if !cfg.Voice {
		return nil, nil
	}
	c := voice.Config{Addr: cfg.VoiceAddr, Public: cfg.VoicePublic}
	s, err := voice.Listen(ctx, c)
	if err == nil {
		return s, nil
	}
	if cfg.VoiceAddrGiven {
		return nil, fmt.Errorf("%w: set HUMANQA_VOICE_ADDR to a free address, or HUMANQA_VOICE=off", err)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(cfg.VoiceAddr) // it was checked
		c.Addr = net.JoinHostPort(host, "0")
		if s, err = voice.Listen(ctx, c); err == nil {
			log.Warnf("%s is taken, voice is at %s: set HUMANQA_VOICE_ADDR to keep it at one address", cfg.VoiceAddr, s.Addr())
			return s, nil
		}
	}
	log.WithError(err).Warn("there is no voice in sessions: set HUMANQA_VOICE_ADDR to an address of this machine, or HUMANQA_VOICE=off")
	return nil, nil
}
