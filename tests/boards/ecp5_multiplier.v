// What is used of ECP5's multiplier: operands signed or not; no registers, as synthesis makes it, or
// those of operands and product, all on clock 0. The simulation library of synthesis has none.
module MULT18X18D(
  input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  input CLK0, CE0, RST0,
  output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
  output P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  parameter REG_INPUTA_CLK = "NONE";
  parameter REG_INPUTA_CE = "CE0";
  parameter REG_INPUTA_RST = "RST0";
  parameter REG_INPUTB_CLK = "NONE";
  parameter REG_INPUTB_CE = "CE0";
  parameter REG_INPUTB_RST = "RST0";
  parameter REG_PIPELINE_CLK = "NONE";
  parameter REG_OUTPUT_CLK = "NONE";
  parameter REG_OUTPUT_CE = "CE0";
  parameter REG_OUTPUT_RST = "RST0";
  parameter GSR = "ENABLED";

  localparam REGISTERED = REG_OUTPUT_CLK == "CLK0";

  initial
    if (REG_INPUTA_CLK != REG_OUTPUT_CLK || REG_INPUTB_CLK != REG_OUTPUT_CLK ||
        (REG_OUTPUT_CLK != "NONE" && REG_OUTPUT_CLK != "CLK0") || REG_PIPELINE_CLK != "NONE" ||
        (REGISTERED && GSR != "DISABLED")) begin
      $display("a multiplier with such registers is not modelled");
      $finish;
    end

  wire [17:0] a = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  wire signed [35:0] wide_a = {{18{SIGNEDA & A17}}, a};
  wire signed [35:0] wide_b = {{18{SIGNEDB & B17}}, b};
  reg signed [35:0] a_reg = 0, b_reg = 0;
  reg [35:0] product_reg = 0;
  wire [35:0] product = (REGISTERED ? a_reg : wide_a) * (REGISTERED ? b_reg : wide_b);

  always @(posedge CLK0)
    if (RST0) begin
      a_reg <= 0;
      b_reg <= 0;
      product_reg <= 0;
    end else if (CE0) begin
      a_reg <= wide_a;
      b_reg <= wide_b;
      product_reg <= product;
    end

  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
          P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} =
         REGISTERED ? product_reg : product;
endmodule
