// Package system implements ports.Clock and ports.Entropy with the operating system's time and randomness.
package system
