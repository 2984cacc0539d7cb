// Package system is time and randomness from the operating system.
package system
