// Package driver makes worlds for the scenarios of package spec: on the use cases alone (Core), through HTTP with everything
// else in memory (HTTP), and on real processes (Stack).
package driver
