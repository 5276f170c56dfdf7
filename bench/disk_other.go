//go:build !linux

package main

// inMemory is only known on Linux, where temporary folders are often not on a
// disk.
func inMemory(string) string { return "" }
