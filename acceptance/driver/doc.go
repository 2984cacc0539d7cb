// Package driver implements the worlds for the scenarios of package spec: HTTP with everything behind it in memory (HTTP), and
// real processes (Stack). Both are spoken to with adapters/apiclient.
package driver
