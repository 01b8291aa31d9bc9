package main

import (
	"fmt"
	"image/color"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var (
	green = color.RGBA{R: 0x1a, G: 0x7f, B: 0x37, A: 0xff}
	red   = color.RGBA{R: 0xcf, G: 0x22, B: 0x2e, A: 0xff}
)

// picture draws goodput and p99 of each route under rising load, with the patterns and
// without, and writes it to file as an SVG.
func picture(file string, all []series) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	var rows [2][]*plot.Plot
	for _, s := range all {
		goodput, err := tile(s, s.route+": answers in time, a second", outcome.goodput)
		if err != nil {
			return err
		}
		p99, err := tile(s, s.route+": p99 of what was accepted, ms", func(o outcome) float64 {
			return float64(o.percentile(99).Milliseconds())
		})
		if err != nil {
			return err
		}
		rows[0], rows[1] = append(rows[0], goodput), append(rows[1], p99)
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(800, 520), vgsvg.EmbedFonts(false))
	page := draw.New(canvas)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	tiles := draw.Tiles{Rows: len(rows), Cols: len(all), PadX: 24, PadY: 24, PadTop: 12, PadBottom: 8, PadLeft: 8, PadRight: 16}
	for i, row := range plot.Align([][]*plot.Plot{rows[0], rows[1]}, tiles, page) {
		for j, where := range row {
			rows[i][j].Draw(where)
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// tile plots one value over the load.
func tile(s series, title string, of func(outcome) float64) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(6)
	p.X.Label.Text = "offered, times capacity"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks())
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true // on the right, a browser's wider font would run into its lines
	p.Legend.XOffs, p.Legend.Padding = 8, 3
	p.Add(plotter.NewGrid())
	for _, run := range []struct {
		name     string
		outcomes []outcome
		color    color.Color
		shape    draw.GlyphDrawer
		dashes   []vg.Length
	}{
		{"with the patterns", s.with, green, draw.CircleGlyph{}, nil},
		{"without", s.without, red, draw.PyramidGlyph{}, []vg.Length{6, 3}},
	} {
		var points plotter.XYs
		for i, o := range run.outcomes {
			points = append(points, plotter.XY{X: multiples[i], Y: of(o)})
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width, line.Dashes = run.color, 2, run.dashes
		dots.Color, dots.Shape, dots.Radius = run.color, run.shape, 3.5
		p.Add(line, dots)
		p.Legend.Add(run.name, line, dots)
	}
	p.Y.Max *= 1.35 // room for the legend
	return p, nil
}

func ticks() []plot.Tick {
	var all []plot.Tick
	for _, m := range multiples {
		all = append(all, plot.Tick{Value: m, Label: fmt.Sprint(m)})
	}
	return all
}
