package ui

import "humanqa/domain/job"

// On lists what a test is to be done on, as far as its client says it.
func On(t job.Target) (on []string) {
	for _, what := range []string{t.Device, t.OS, t.Browser, t.ScreenSize, t.Network} {
		if what != "" {
			on = append(on, what)
		}
	}
	return on
}
