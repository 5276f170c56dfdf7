package service

import (
	"context"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

// tellSystemd tells systemd of a state (sd_notify), if systemd started the process and
// wants to know. A failure costs a restart at most, so it is only logged.
func tellSystemd(state string, log logrus.FieldLogger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.WithError(err).Warn("systemd cannot be told: " + state)
	}
}

// feedWatchdog tells systemd that the process lives, until ctx ends. A database that is
// away is no reason for a restart: only a process that stands still is.
func feedWatchdog(ctx context.Context, log logrus.FieldLogger) error {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.WithError(err).Warn("the watchdog's interval cannot be read, so systemd restarts nothing")
	}
	if every == 0 { // also after an error
		<-ctx.Done()
		return nil
	}
	for backoff.Wait(ctx, every/3) == nil {
		tellSystemd(daemon.SdNotifyWatchdog, log)
	}
	return nil
}
