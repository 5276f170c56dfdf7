//go:build !linux

package main

// warnings are only known on Linux.
func warnings(string) []string { return nil }
