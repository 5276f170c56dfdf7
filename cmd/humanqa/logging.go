package main

import (
	"io"
	"os"
	"strings"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// newLogger writes to w: text when a person is likely to read it, else JSON.
func newLogger(cfg Config, w io.Writer) *logrus.Logger {
	log := logrus.New()
	log.SetOutput(w)
	log.SetLevel(cfg.LogLevel)
	format := cfg.LogFormat
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

// quiet is for commands: their errors are one line, so what they start says
// nothing short of a warning, unless debugging was asked for.
func quiet(log *logrus.Logger) *logrus.Logger {
	if log.Level == logrus.InfoLevel {
		log.SetLevel(logrus.WarnLevel)
	}
	return log
}

// oneLine joins the lines of an error, such as those of errors.Join.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
