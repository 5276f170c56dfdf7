package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Plot is a chart of columns, which the server draws: an axis that begins with 0, numbers
// below, words for the mouse. A table beside it shows the same without a mouse.
type Plot struct {
	Max, Half string // at the axis
	Columns   []Column
}

// Column is one column; its parts stand on each other, the lowest first.
type Column struct {
	Label  string // below it; the plot leaves out labels that have no room
	Number string // below it, above the label
	Says   string // to the mouse
	Parts  []ColumnPart
}

// ColumnPart is a part of a column, whose kind is its colour: pass, fail, skip, plain. Y and
// High are of 100.
type ColumnPart struct {
	Kind    string
	Of      float64
	Y, High string
}

const (
	// mostLabels bounds the labels, which must have room on a phone.
	mostLabels = 5
	// mostNumbers bounds the columns of a plot that shows a number for each.
	mostNumbers = 16
)

// NewPlot draws columns against an axis that ends with top, or with the next round number
// above the highest column where top is 0. unit follows the numbers of the axis.
func NewPlot(columns []Column, top float64, unit string) *Plot {
	if len(columns) == 0 {
		return nil
	}
	if top == 0 {
		for _, c := range columns {
			sum := 0.0
			for _, p := range c.Parts {
				sum += p.Of
			}
			top = max(top, sum)
		}
		top = roundUp(top)
	}
	axis := func(v float64) string {
		whole, part := math.Modf(v)
		return Group(int64(whole)) + strings.TrimPrefix(strconv.FormatFloat(part, 'f', -1, 64), "0") + unit
	}
	plot := &Plot{Max: axis(top), Half: axis(top / 2), Columns: columns}
	every := (len(columns) + mostLabels - 1) / mostLabels
	for i := range columns {
		c, y := &columns[i], 100.0
		for j := range c.Parts {
			high := 100 * max(0, c.Parts[j].Of) / top
			y -= high
			c.Parts[j].Y, c.Parts[j].High = decimal(y), decimal(high)
		}
		if (len(columns)-1-i)%every != 0 {
			c.Label = ""
		}
		if len(columns) > mostNumbers {
			c.Number = ""
		}
	}
	return plot
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

// roundUp is the next 1, 2 or 5 with zeros behind it, and at least 2.
func roundUp(v float64) float64 {
	if v <= 2 {
		return 2
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5, 10} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

// Spark is a line without an axis, 60 wide and 18 high.
type Spark struct {
	Points     string
	LastX, End string
	Says       string
}

// NewSpark draws values from 0 to 1, the newest last; nil of fewer than two.
func NewSpark(values []float64, says string) *Spark {
	if len(values) < 2 {
		return nil
	}
	s := &Spark{Says: says}
	for i, v := range values {
		x, y := decimal(2+56*float64(i)/float64(len(values)-1)), decimal(16-14*min(max(v, 0), 1))
		s.Points += fmt.Sprintf("%s,%s ", x, y)
		s.LastX, s.End = x, y
	}
	return s
}
