// Package terminal writes text for people: tables that fit a width, ages and sizes, and nothing that moves the cursor.
package terminal
