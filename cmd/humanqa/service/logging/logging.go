// Package logging is how the service and its commands write to their log.
package logging

import (
	"io"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// New writes to w. An empty format means text on a terminal, else JSON.
func New(format string, level logrus.Level, w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	log.SetLevel(level)
	if format == "" {
		format = "json"
		if isTerminal(w) {
			format = "text"
		}
	}
	if format == "text" {
		log.SetFormatter(&logrus.TextFormatter{FullTimestamp: true, TimestampFormat: "15:04:05.000"})
	} else {
		log.SetFormatter(&logrus.JSONFormatter{TimestampFormat: "2006-01-02T15:04:05.000Z07:00"})
	}
	return log
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Quiet is for commands: their errors are one line, so the parts that they start log
// nothing below a warning, unless debugging was asked for.
func Quiet(log *logrus.Logger) *logrus.Logger {
	if log.Level == logrus.InfoLevel {
		log.SetLevel(logrus.WarnLevel)
	}
	return log
}

// OneLine joins the lines of an error, such as those of errors.Join.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
