// Package download holds the rule that keeps one download from holding what others need: how slow it may be.
package download
